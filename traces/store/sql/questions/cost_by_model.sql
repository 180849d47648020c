-- How much did each model use and cost? cost_usd from list prices, cost_reported_usd from the provider.
SELECT
    model,
    count(DISTINCT trajectory_id) AS runs,
    count(*) AS requests,
    sum(prompt_tokens)::BIGINT AS prompt_tokens,
    sum(cached_tokens)::BIGINT AS cached_tokens,
    sum(completion_tokens)::BIGINT AS completion_tokens,
    sum(reasoning_tokens)::BIGINT AS reasoning_tokens,
    sum(cost_usd) AS cost_usd,
    count(*) FILTER (cost_usd IS NULL) AS unpriced,
    sum(cost_reported_usd) AS cost_reported_usd
FROM usage
GROUP BY model
ORDER BY cost_usd DESC NULLS LAST, model;
