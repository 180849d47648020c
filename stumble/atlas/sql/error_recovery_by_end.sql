-- Do runs that fail recover from fewer errors than runs that pass? Episodes of errors by the run's end.
--
-- An episode is a series of failed calls; local_rate: a call that worked came after it; lo and hi are
-- clustered by task. errors_per_run: failed calls for each run. An association: hard tasks have more.
WITH placed AS (
    SELECT
        r.run_id,
        r.agent || ' on ' || r.suite AS agent,
        r.model,
        r.suite || '/' || r.task AS task,
        r.passed,
        c.is_error,
        lag(c.is_error, 1, false) OVER (PARTITION BY r.run_id ORDER BY c.call) AS erred_before,
        c.recovered_within
    FROM run AS r
    JOIN call AS c USING (run_id)
    WHERE r.passed IS NOT NULL AND c.is_error IS NOT NULL
),

per_task AS (
    SELECT
        agent,
        model,
        passed,
        task,
        count(DISTINCT run_id) AS k_runs,
        count(*) FILTER (is_error) AS k_errors,
        count(*) FILTER (is_error AND NOT erred_before)::DOUBLE AS k_episodes,
        count(recovered_within) FILTER (is_error AND NOT erred_before)::DOUBLE AS k_ended
    FROM placed
    GROUP BY agent, model, passed, task
),

rates AS (
    SELECT
        agent,
        model,
        passed,
        sum(k_runs)::BIGINT AS runs,
        sum(k_errors) / sum(k_runs) AS errors_per_run,
        sum(k_episodes)::BIGINT AS episodes,
        clustered(list(k_ended) FILTER (k_episodes > 0), list(k_episodes) FILTER (k_episodes > 0)) AS local
    FROM per_task
    GROUP BY agent, model, passed
)

SELECT
    agent,
    model,
    passed,
    runs,
    errors_per_run,
    episodes,
    local.rate AS local_rate,
    local.lo AS lo,
    local.hi AS hi,
    local.reason AS reason
FROM rates
ORDER BY agent, model, passed DESC;
