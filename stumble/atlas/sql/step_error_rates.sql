-- In which share of steps does a tool call fail? By source: a measured rate for survival_table e=atlas:SOURCE.
--
-- Estimand: steps with at least one failed call over all steps, of runs with calls that say whether
-- they failed; clustered by task. A command of the agent's own that ended with another status than 0 is
-- no failure of its tool: own_error_steps counts steps with these alone, and covered is the share of all
-- error steps that e is about. Only errors that a result shows: how often tools return wrong values
-- that look right is seen nowhere.
WITH erring AS (
    SELECT
        run_id,
        count(DISTINCT step) FILTER (is_error AND error_class <> 'command_failed') AS k_error_steps,
        count(DISTINCT step) FILTER (is_error) AS k_all_error_steps
    FROM call
    WHERE is_error IS NOT NULL
    GROUP BY run_id
),

per_task AS (
    SELECT
        r.source,
        r.task,
        sum(least(e.k_error_steps, r.steps))::DOUBLE AS k_errors,
        sum(least(e.k_all_error_steps, r.steps))::BIGINT AS k_all_errors,
        sum(r.steps)::DOUBLE AS k_steps
    FROM run AS r
    JOIN erring AS e USING (run_id)
    WHERE r.steps > 0
    GROUP BY r.source, r.task
),

rates AS (
    SELECT
        source,
        clustered(list(k_errors), list(k_steps)) AS e,
        sum(k_all_errors)::BIGINT AS n_all_errors
    FROM per_task
    GROUP BY source
)

SELECT
    source,
    e.clusters AS tasks,
    e.cases::BIGINT AS steps,
    e.hits::BIGINT AS error_steps,
    e.rate AS e,
    e.lo AS lo,
    e.hi AS hi,
    e.reason AS reason,
    n_all_errors - e.hits::BIGINT AS own_error_steps,
    e.hits / nullif(n_all_errors, 0) AS covered
FROM rates
ORDER BY source;
