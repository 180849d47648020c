-- How much did a run use, clean and with a fault? Mean steps, tokens, seconds and dollars over traces.
--
-- kind: recording, replay, clean (twins), sham or fault. Tokens count what the tape answered as
-- well. A mean is NULL where it is not known of a single run; unpriced counts runs without a price.
WITH runs AS (
    SELECT
        agent,
        model,
        world,
        CASE WHEN source = 'fork' THEN condition ELSE coalesce(source, 'recording') END AS kind,
        coalesce(parent_id, task, trajectory_id) AS trace,
        n_steps,
        tokens,
        seconds,
        cost_usd
    FROM trajectories
    WHERE coalesce(ended != 'harness', true)
),

per_trace AS (
    SELECT
        agent,
        model,
        world,
        kind,
        trace,
        count(*) AS k_runs,
        count(*) FILTER (cost_usd IS NULL) AS k_unpriced,
        sum(cost_usd) AS k_cost,
        avg(n_steps) AS mean_steps,
        avg(tokens) AS mean_tokens,
        avg(seconds) AS mean_seconds,
        avg(cost_usd) AS mean_cost
    FROM runs
    GROUP BY agent, model, world, kind, trace
),

pooled AS (
    SELECT
        agent,
        model,
        world,
        kind,
        count(*) AS traces,
        sum(k_runs)::BIGINT AS runs,
        sum(k_unpriced)::BIGINT AS unpriced,
        sum(k_cost) AS cost_total,
        over_traces(list(mean_steps) FILTER (mean_steps IS NOT NULL)) AS steps,
        over_traces(list(mean_tokens) FILTER (mean_tokens IS NOT NULL)) AS tokens,
        over_traces(list(mean_seconds) FILTER (mean_seconds IS NOT NULL)) AS seconds,
        over_traces(list(mean_cost) FILTER (mean_cost IS NOT NULL)) AS cost
    FROM per_trace
    GROUP BY agent, model, world, kind
)

SELECT
    agent,
    model,
    world,
    kind,
    runs,
    traces,
    steps.mean AS steps,
    CASE WHEN steps.lo < 0 THEN 0 ELSE steps.lo END AS steps_lo,
    steps.hi AS steps_hi,
    tokens.mean AS tokens,
    CASE WHEN tokens.lo < 0 THEN 0 ELSE tokens.lo END AS tokens_lo,
    tokens.hi AS tokens_hi,
    seconds.mean AS seconds,
    CASE WHEN seconds.lo < 0 THEN 0 ELSE seconds.lo END AS seconds_lo,
    seconds.hi AS seconds_hi,
    cost.mean AS cost_usd,
    CASE WHEN cost.lo < 0 THEN 0 ELSE cost.lo END AS cost_usd_lo,
    cost.hi AS cost_usd_hi,
    cost_total,
    unpriced,
    steps.reason AS reason
FROM pooled
ORDER BY agent, model, world, kind;
