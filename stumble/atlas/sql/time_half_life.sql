-- After how many minutes has half of the runs failed, if the hazard were the same at each minute?
--
-- Estimand: ln 2 over the failures for each minute of the agent, of runs with a known end and time.
-- Formula: an exponential life, with the rate clustered by task; its interval is that of the rate. It
-- is the form in which time horizons are published. Not for runs that last longer than these: a
-- failure is dated at the end of its run, and the question hazard rejects a constant rate in steps.
WITH per_task AS (
    SELECT
        suite,
        agent,
        model,
        task,
        count(*) AS k_runs,
        count(*) FILTER (NOT passed)::DOUBLE AS k_deaths,
        sum(seconds) AS k_seconds
    FROM run
    WHERE passed IS NOT NULL AND seconds > 0 AND mistake_step IS NULL
    GROUP BY suite, agent, model, task
),

rates AS (
    SELECT
        suite,
        agent,
        model,
        sum(k_runs)::BIGINT AS runs,
        sum(k_deaths)::BIGINT AS deaths,
        sum(k_seconds) / 60 AS minutes,
        count(*) AS tasks,
        -- Cases are seconds: the rate is so small that the binomial of `clustered` is Poisson's.
        clustered(list(k_deaths), list(k_seconds)) AS hazard
    FROM per_task
    GROUP BY suite, agent, model
)

SELECT
    suite,
    agent,
    model,
    runs,
    tasks,
    deaths,
    minutes,
    ln(2) / nullif(hazard.rate, 0) / 60 AS half_life_minutes,
    ln(2) / nullif(hazard.hi, 0) / 60 AS lo,
    ln(2) / nullif(hazard.lo, 0) / 60 AS hi,
    CASE WHEN deaths = 0 THEN 'no_deaths' ELSE hazard.reason END AS reason
FROM rates
ORDER BY suite, half_life_minutes DESC NULLS LAST, agent, model;
