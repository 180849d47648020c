-- Does a run with a tool error pass less often than another run of the same task without one?
--
-- Estimand: the difference of pass rates, with an error less without, within the same agent, model
-- and task, over tasks that have both. Formula: the risk difference of Mantel and Haenszel (1959) and
-- their test (p). Not a cause: an error may be the sign of a run that was already lost. Agents with
-- one trial for each task have no such pair and are not listed.
WITH graded AS (
    SELECT
        r.suite,
        r.agent,
        r.model,
        r.task,
        r.passed,
        bool_or(c.is_error) AS erred
    FROM run AS r
    JOIN call AS c USING (run_id)
    WHERE r.passed IS NOT NULL AND c.is_error IS NOT NULL
    GROUP BY r.run_id, r.suite, r.agent, r.model, r.task, r.passed
),

strata AS (
    SELECT
        suite,
        agent,
        model,
        task,
        count(*)::DOUBLE AS k_runs,
        count(*) FILTER (passed)::DOUBLE AS k_passed,
        count(*) FILTER (erred)::DOUBLE AS k_erred,
        count(*) FILTER (erred AND passed)::DOUBLE AS k_erred_passed
    FROM graded
    GROUP BY suite, agent, model, task
    HAVING k_erred > 0 AND k_erred < k_runs
),

summed AS (
    SELECT
        suite,
        agent,
        model,
        count(*) AS tasks,
        sum(k_runs)::BIGINT AS runs,
        sum(k_erred)::BIGINT AS with_error,
        sum(k_erred * (k_runs - k_erred) / k_runs) AS weight,
        sum(
            (k_erred_passed * (k_runs - k_erred) - (k_passed - k_erred_passed) * k_erred) / k_runs
        ) AS difference,
        sum(k_erred_passed - stratum_expected(k_passed, k_runs, k_erred)) AS excess,
        sum(stratum_variance(k_passed, k_runs, k_erred)) AS variance
    FROM strata
    GROUP BY suite, agent, model
)

SELECT
    suite,
    agent,
    model,
    tasks,
    runs,
    with_error,
    difference / weight AS difference,
    mantel_haenszel(excess, variance) AS p
FROM summed
ORDER BY suite, agent, model;
