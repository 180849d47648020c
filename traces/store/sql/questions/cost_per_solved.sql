-- What does a solved task cost? Dollars and tokens of all attempts over those that passed, per model.
--
-- Estimand: dollars spent for each run that passes, on tasks like these. Only clean runs with a
-- verdict and a cost (costed) count, others are in left_out; tokens_per_solved is of those with
-- tokens. Formula: sum of costs / number passed; its interval is that of a ratio of sums over tasks
-- (linearised, Student's t), none for fewer than five tasks. listed: runs costed by list prices.
WITH runs AS (
    SELECT
        c.agent,
        c.model,
        c.cluster,
        t.cost_usd,
        t.tokens,
        t.cost_source,
        t.passed
    FROM clean_runs AS c
    JOIN trajectories AS t USING (trajectory_id)
),

per_task AS (
    SELECT
        agent,
        model,
        cluster,
        count(*) AS k_runs,
        count(*) FILTER (known) AS k_costed,
        count(*) FILTER (known AND cost_source = 'list_price') AS k_listed,
        coalesce(sum(cost_usd) FILTER (known), 0)::DOUBLE AS k_cost,
        count(*) FILTER (known AND passed)::DOUBLE AS k_solved,
        sum(tokens) FILTER (passed IS NOT NULL) AS k_tokens,
        count(*) FILTER (passed AND tokens IS NOT NULL) AS k_solved_of_tokens
    FROM (SELECT *, cost_usd IS NOT NULL AND passed IS NOT NULL AS known FROM runs)
    GROUP BY agent, model, cluster
),

pooled AS (
    SELECT
        agent,
        model,
        sum(k_costed)::BIGINT AS costed,
        (sum(k_runs) - sum(k_costed))::BIGINT AS left_out,
        sum(k_listed)::BIGINT AS listed,
        count(*) FILTER (k_costed > 0) AS tasks,
        sum(k_solved)::BIGINT AS solved,
        sum(k_cost) AS cost_usd,
        sum(k_cost) / nullif(sum(k_solved), 0) AS ratio,
        sum(k_tokens) / nullif(sum(k_solved_of_tokens), 0) AS tokens_per_solved
    FROM per_task
    GROUP BY agent, model
),

spread AS (
    SELECT
        p.agent,
        p.model,
        sqrt(
            sum((t.k_cost - p.ratio * t.k_solved) ** 2) * max(p.tasks) / (max(p.tasks) - 1)
        ) / max(p.solved) * t975((max(p.tasks) - 1)::DOUBLE) AS half_width
    FROM pooled AS p
    JOIN per_task AS t
        ON p.agent IS NOT DISTINCT FROM t.agent AND p.model IS NOT DISTINCT FROM t.model
    WHERE p.tasks >= 5 AND p.solved > 0 AND t.k_costed > 0
    GROUP BY p.agent, p.model
)

SELECT
    pooled.agent,
    pooled.model,
    costed,
    left_out,
    listed,
    tasks,
    solved,
    cost_usd,
    ratio AS cost_per_solved,
    CASE WHEN half_width IS NOT NULL THEN greatest(ratio - half_width, 0) END
        AS cost_per_solved_lo,
    ratio + half_width AS cost_per_solved_hi,
    CASE
        WHEN costed = 0 THEN 'no_costs'
        WHEN solved = 0 THEN 'none_solved'
        WHEN tasks < 5 THEN 'few_tasks'
    END AS cost_per_solved_reason,
    tokens_per_solved
FROM pooled
LEFT JOIN spread
    ON
        pooled.agent IS NOT DISTINCT FROM spread.agent
        AND pooled.model IS NOT DISTINCT FROM spread.model
ORDER BY cost_per_solved NULLS LAST, pooled.agent, pooled.model;
