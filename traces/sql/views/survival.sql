-- The chance to get through n steps, per agent, model and world: implied (model) and observed (km).
--
-- model: (1 - e (1 - h) - u)^n. h: handled_rate, the plain mean over operators, each with the same
-- weight. u: deaths per step of unforced runs of that agent and model, in whatever world. e: share
-- of steps with a failed tool call, from unforced runs (e_from = store) or assumed to be 1, 2 and
-- 5 %. Deaths that followed an unforced error count in u and again in e (1 - h): too low rather
-- than too high. lo and hi take the worst and the best end of all three 95 % intervals at once, so
-- they are wider than a joint interval. It also takes steps for independent and alike, which
-- they are not; km does not, and has no row beyond the last observed step.
-- naive: (1 - e)^n, which counts every error as fatal and no silent failure at all.
WITH per_task AS (
    SELECT
        agent,
        model,
        task,
        list(DISTINCT scenario) AS some_scenarios,
        sum(n_steps)::DOUBLE AS k_steps,
        count(*) FILTER (died)::DOUBLE AS k_deaths,
        coalesce(sum(n_steps) FILTER (error_steps IS NOT NULL), 0)::DOUBLE AS k_known_steps,
        coalesce(sum(error_steps), 0)::DOUBLE AS k_error_steps
    FROM unforced_runs
    GROUP BY agent, model, task
),

hazards AS (
    SELECT
        agent,
        model,
        list_sort(list_distinct(flatten(list(some_scenarios)))) AS scenarios,
        clustered(list(k_deaths), list(k_steps)) AS death,
        clustered(list(k_error_steps), list(k_known_steps)) AS error
    FROM per_task
    GROUP BY agent, model
),

handling AS (
    SELECT
        agent,
        model,
        world,
        list_sort(list_distinct(flatten(list(scenarios)))) AS scenarios,
        count(*) FILTER (handled_rate IS NOT NULL) AS ops,
        avg(handled_rate) AS h,
        CASE WHEN count(handled_rate_lo) = count(handled_rate) THEN avg(handled_rate_lo) END AS h_lo,
        CASE WHEN count(handled_rate_hi) = count(handled_rate) THEN avg(handled_rate_hi) END AS h_hi
    FROM recovery
    GROUP BY agent, model, world
),

-- No death in the steps seen: the exact bound on steps, as a hazard is per step.
rates AS (
    SELECT
        coalesce(handling.agent, hazards.agent) AS agent,
        coalesce(handling.model, hazards.model) AS model,
        handling.world,
        list_sort(list_distinct(list_concat(handling.scenarios, hazards.scenarios))) AS scenarios,
        ops,
        h,
        h_lo,
        h_hi,
        death.rate AS u,
        death.lo AS u_lo,
        CASE WHEN death.hits = 0 AND death.hi IS NOT NULL THEN none_in(death.cases) ELSE death.hi END
            AS u_hi,
        error.rate AS seen,
        error.lo AS seen_lo,
        CASE WHEN error.hits = 0 AND error.hi IS NOT NULL THEN none_in(error.cases) ELSE error.hi END
            AS seen_hi
    FROM handling
    FULL JOIN hazards
        ON
            handling.agent IS NOT DISTINCT FROM hazards.agent
            AND handling.model IS NOT DISTINCT FROM hazards.model
),

wild AS (
    SELECT
        *,
        unnest([
            {'e_from': 'store', 'e': seen, 'e_lo': seen_lo, 'e_hi': seen_hi},
            {'e_from': 'assumed', 'e': 0.01, 'e_lo': 0.01, 'e_hi': 0.01},
            {'e_from': 'assumed', 'e': 0.02, 'e_lo': 0.02, 'e_hi': 0.02},
            {'e_from': 'assumed', 'e': 0.05, 'e_lo': 0.05, 'e_hi': 0.05}
        ], recursive := true)
    FROM rates
),

reach AS (
    SELECT agent, model, max(step) AS last_step
    FROM km
    GROUP BY agent, model
),

horizons AS (
    SELECT agent, model, last_step, unnest([10, 20, 50]) AS n
    FROM reach
),

observed AS (
    SELECT
        horizons.agent,
        horizons.model,
        horizons.n,
        arg_max({'s': km.survival, 'lo': km.lo, 'hi': km.hi}, km.step) AS reached
    FROM horizons
    LEFT JOIN km
        ON
            horizons.agent IS NOT DISTINCT FROM km.agent
            AND horizons.model IS NOT DISTINCT FROM km.model
            AND km.step <= horizons.n
    WHERE horizons.n <= horizons.last_step
    GROUP BY horizons.agent, horizons.model, horizons.n
)

SELECT
    agent,
    model,
    world,
    n,
    'model' AS basis,
    e_from,
    e,
    implied(e, h, u, n) AS survival,
    implied(e_hi, h_lo, u_hi, n) AS lo,
    implied(e_lo, h_hi, u_lo, n) AS hi,
    pow(1 - e, n) AS naive,
    h,
    h_lo,
    h_hi,
    u,
    u_lo,
    u_hi,
    ops,
    CASE
        WHEN h IS NULL THEN 'no_faults'
        WHEN u IS NULL THEN 'no_clean_runs'
        WHEN e IS NULL THEN 'no_error_rate'
        WHEN lo IS NULL OR hi IS NULL THEN 'few_traces'
    END AS reason,
    scenarios
FROM wild
CROSS JOIN (SELECT unnest([10, 20, 50]) AS n)
UNION ALL
SELECT
    observed.agent,
    observed.model,
    NULL AS world,
    observed.n,
    'km' AS basis,
    CASE WHEN hazards.error.rate IS NOT NULL THEN 'store' END AS e_from,
    hazards.error.rate AS e,
    coalesce(observed.reached.s, 1.0) AS survival,
    observed.reached.lo AS lo,
    observed.reached.hi AS hi,
    pow(1 - hazards.error.rate, observed.n) AS naive,
    NULL AS h,
    NULL AS h_lo,
    NULL AS h_hi,
    NULL AS u,
    NULL AS u_lo,
    NULL AS u_hi,
    NULL AS ops,
    NULL AS reason,
    hazards.scenarios
FROM observed
JOIN hazards
    ON
        observed.agent IS NOT DISTINCT FROM hazards.agent
        AND observed.model IS NOT DISTINCT FROM hazards.model;
