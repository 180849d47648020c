-- How long does it last? Chance per step not to fail, half-life and p^n, from unforced runs.
-- default: model = null
--
-- p = 1 - deaths / steps, with censored runs counted as far as they went. half_life and p_n are a
-- model, one hazard for all steps and tasks: hazard tests it, km is what was observed.
WITH per_task AS (
    SELECT
        agent,
        model,
        task,
        count(*) AS k_runs,
        count(*) FILTER (died)::DOUBLE AS k_deaths,
        sum(n_steps)::DOUBLE AS k_steps
    FROM lives
    WHERE $model IS NULL OR model = $model
    GROUP BY agent, model, task
),

fitted AS (
    SELECT
        agent,
        model,
        sum(k_runs)::BIGINT AS runs,
        clustered(list(k_deaths), list(k_steps)) AS death
    FROM per_task
    GROUP BY agent, model
),

bounded AS (
    SELECT
        agent,
        model,
        runs,
        death.clusters AS tasks,
        death.hits::BIGINT AS deaths,
        death.cases::BIGINT AS steps,
        1 - death.rate AS p,
        -- No death in the steps seen: the exact bound on steps, as a hazard is per step.
        1 - CASE WHEN death.hits = 0 AND death.hi IS NOT NULL THEN none_in(death.cases) ELSE death.hi END
            AS p_lo,
        1 - death.lo AS p_hi,
        death.reason AS reason
    FROM fitted
)

SELECT
    agent,
    model,
    runs,
    tasks,
    deaths,
    steps,
    p,
    p_lo,
    p_hi,
    half_life(p) AS half_life,
    half_life(p_lo) AS half_life_lo,
    half_life(p_hi) AS half_life_hi,
    p ** 20 AS p_20,
    p_lo ** 20 AS p_20_lo,
    p_hi ** 20 AS p_20_hi,
    coalesce(CASE WHEN deaths = 0 THEN 'no_deaths' END, reason) AS reason
FROM bounded
ORDER BY agent, model;
