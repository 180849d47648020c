-- Probability to complete n steps per agent, model and world: implied (model) and observed (kaplan_meier).
--
-- Estimand: the share of runs of n steps that are still good if tools fail in a share e of steps.
-- curve says what good is: `ends_right` (recovered, masked, absorbed), or `not_silently_wrong`
-- (those and honest failures). model: (1 - e (1 - h) - u)^n. class: which errors e is the rate of,
-- and h the rate of ending so after faults of that class: `loud` (a channel of the protocol says so:
-- D0), `quiet` (all else that has a D, or lies), `other` (without either, as a delay). Loud errors are
-- seen in unforced runs (e_from = store) or assumed to come in 1, 2 and 5 % of steps (assumed); how
-- often tools lie is seen nowhere, so that a quiet rate is always assumed. An error of another class
-- is taken not to occur: the question survival_table takes a rate of both. h: each operator of the
-- class with the same weight, as one clustered rate; another judge version, or another verifier of
-- the same recordings, is another row (measured_by). u: deaths per step of unforced runs of that
-- agent and model, in whatever world, by the same curve; of a failure whose step nobody knows u
-- counts all steps of its run, and u_hi only the first. Deaths that followed an unforced error count
-- in u and again in e (1 - h): too low rather than too high.
-- bound: what survival is at n steps if tasks or steps differ (constant_bound). lo and hi take the
-- worst and the best end of all three 95 % intervals at once and those of kaplan_meier at n steps, so that
-- they hold for any hazard that does not rise (conservative); beyond the last step at which kaplan_meier has
-- an interval (extrapolated) they take its upper end there. naive: (1 - e)^n, which counts every error as fatal and no silent failure.
-- kaplan_meier: what unforced runs did (see the view kaplan_meier; at_least and at_most, if survival is not known).
-- Not for the rate in the wild of an agent whose tools lie, unless somebody knows how often.
WITH per_task AS (
    SELECT
        agent,
        model,
        cluster,
        curve,
        list(DISTINCT scenario) AS some_scenarios,
        count(*) FILTER (dies IS NULL) AS k_ungraded,
        count(dies)::DOUBLE AS k_runs,
        count(*) FILTER (dies AND ending = 'budget') AS k_budget,
        count(*) FILTER (dies AND ending != 'crashed') AS k_undated,
        max(n_steps) FILTER (dies IS NOT NULL) AS longest,
        count(*) FILTER (dies)::DOUBLE AS k_deaths,
        coalesce(sum(n_steps) FILTER (dies IS NOT NULL), 0)::DOUBLE AS k_steps,
        coalesce(
            sum(CASE WHEN dies AND ending != 'crashed' THEN 1 ELSE n_steps END)
                FILTER (dies IS NOT NULL),
            0
        )::DOUBLE AS k_sure_steps,
        coalesce(sum(n_steps) FILTER (error_steps IS NOT NULL), 0)::DOUBLE AS k_known_steps,
        coalesce(sum(error_steps), 0)::DOUBLE AS k_error_steps
    FROM (
        SELECT
            *,
            unnest([
                {'curve': 'ends_right', 'dies': died},
                {'curve': 'not_silently_wrong', 'dies': died AND ending != 'abstained'}
            ], recursive := true)
        FROM unforced_runs
    )
    GROUP BY agent, model, cluster, curve
),

per_agent AS (
    SELECT
        agent,
        model,
        curve,
        list_sort(list_distinct(flatten(list(some_scenarios)))) AS scenarios,
        sum(k_ungraded)::BIGINT AS ungraded,
        sum(k_budget)::BIGINT AS by_budget,
        sum(k_undated)::BIGINT AS undated,
        max(longest) AS longest,
        sum(k_steps) / nullif(sum(k_runs), 0) AS mean_steps,
        hazards_over(
            list(k_deaths), list(k_steps), list(k_sure_steps), list(k_runs), max(longest)
        ) AS dated,
        clustered(list(k_error_steps), list(k_known_steps)) AS error
    FROM per_task
    GROUP BY agent, model, curve
),

hazards AS MATERIALIZED (
    SELECT
        * EXCLUDE (dated),
        dated.late AS death,
        dated.early AS sure_death
    FROM per_agent
),

classed AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        trace,
        op,
        scenario,
        CASE
            WHEN detect = 'D0' THEN 'loud'
            WHEN detect IS NOT NULL THEN 'quiet'
            WHEN family = 'E' OR family = 'T' AND op != 'delay' THEN 'loud'
            WHEN family IN ('S', 'V', 'X') THEN 'quiet'
            ELSE 'other'
        END AS class,
        unnest([
            {'curve': 'ends_right', 'is_good': ends_right},
            {'curve': 'not_silently_wrong', 'is_good': handled}
        ], recursive := true)
    FROM judged_injections
    WHERE settled AND NOT sham
),

known AS (FROM classed WHERE is_good IS NOT NULL),

per_op AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        curve,
        class,
        op,
        trace,
        list(DISTINCT scenario) AS some_scenarios,
        count(*)::DOUBLE AS k_cases,
        count(*) FILTER (is_good)::DOUBLE AS k_good,
        1 / sum(count(*)) OVER (
            PARTITION BY agent, model, world, measured_by, curve, class, op
        ) AS each_weighs
    FROM known
    GROUP BY agent, model, world, measured_by, curve, class, op, trace
),

per_trace AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        curve,
        class,
        trace,
        list_distinct(flatten(list(some_scenarios))) AS some_scenarios,
        list(DISTINCT op) AS some_ops,
        sum(each_weighs * k_good) AS good,
        sum(each_weighs * k_cases) AS cases,
        sum(each_weighs * each_weighs * k_cases) AS squares
    FROM per_op
    GROUP BY agent, model, world, measured_by, curve, class, trace
),

handling AS MATERIALIZED (
    SELECT
        agent,
        model,
        world,
        measured_by,
        curve,
        class,
        list_sort(list_distinct(flatten(list(some_scenarios)))) AS scenarios,
        list_sort(list_distinct(flatten(list(some_ops)))) AS ops,
        weighted(list(good), list(cases), list(squares)) AS h
    FROM per_trace
    GROUP BY agent, model, world, measured_by, curve, class
),

-- Loud and quiet errors are asked for whether or not any such fault was injected.
places AS (
    SELECT DISTINCT agent, model, world, measured_by, class
    FROM handling
    UNION
    SELECT DISTINCT agent, model, world, measured_by, unnest(['loud', 'quiet']) AS class
    FROM handling
    UNION
    SELECT agent, model, NULL AS world, NULL AS measured_by, unnest(['loud', 'quiet']) AS class
    FROM (SELECT DISTINCT agent, model FROM hazards) AS hazards
    WHERE NOT EXISTS (
        FROM handling
        WHERE
            handling.agent IS NOT DISTINCT FROM hazards.agent
            AND handling.model IS NOT DISTINCT FROM hazards.model
    )
),

rates AS (
    SELECT
        places.*,
        curves.curve,
        list_sort(list_distinct(list_concat(handling.scenarios, hazards.scenarios))) AS scenarios,
        len(handling.ops) AS ops,
        h.rate AS h,
        h.lo AS h_lo,
        h.hi AS h_hi,
        h.reason AS h_reason,
        death.rate AS u,
        death.lo AS u_lo,
        sure_death.hi AS u_hi,
        death.hi AS u_late_hi,
        death.reason AS u_reason,
        undated,
        ungraded,
        by_budget,
        mean_steps,
        longest,
        error.rate AS seen,
        error.lo AS seen_lo,
        error.hi AS seen_hi
    FROM places
    CROSS JOIN (SELECT unnest(['ends_right', 'not_silently_wrong']) AS curve) AS curves
    LEFT JOIN handling
        ON
            places.agent IS NOT DISTINCT FROM handling.agent
            AND places.model IS NOT DISTINCT FROM handling.model
            AND places.world IS NOT DISTINCT FROM handling.world
            AND places.measured_by IS NOT DISTINCT FROM handling.measured_by
            AND places.class = handling.class
            AND curves.curve = handling.curve
    LEFT JOIN hazards
        ON
            places.agent IS NOT DISTINCT FROM hazards.agent
            AND places.model IS NOT DISTINCT FROM hazards.model
            AND curves.curve = hazards.curve
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

observed AS MATERIALIZED (
    SELECT
        *,
        max(step) FILTER (lo IS NOT NULL) OVER (PARTITION BY agent, model, curve) AS reach
    FROM kaplan_meier
),

modelled AS (
    SELECT
        wild.*,
        ns.n,
        kaplan_meier.reach,
        kaplan_meier.lo AS kaplan_meier_lo,
        kaplan_meier.hi AS kaplan_meier_hi
    FROM wild
    CROSS JOIN (SELECT unnest([10, 20, 50]) AS n) AS ns
    LEFT JOIN observed AS kaplan_meier
        ON
            wild.agent IS NOT DISTINCT FROM kaplan_meier.agent
            AND wild.model IS NOT DISTINCT FROM kaplan_meier.model
            AND wild.curve = kaplan_meier.curve
            AND least(ns.n, kaplan_meier.reach) = kaplan_meier.step
    WHERE wild.class = 'loud' OR wild.e_from = 'assumed'
),

bounded AS (
    SELECT
        *,
        CASE
            WHEN n > reach THEN implied_lo(e_hi, h_lo, u_hi, n, 1)
            ELSE implied_lo(e_hi, h_lo, u_late_hi, n, kaplan_meier_lo)
        END AS lo,
        implied_hi(e_lo, h_hi, u_lo, n, kaplan_meier_hi) AS hi
    FROM modelled
)

SELECT
    agent,
    model,
    world,
    measured_by,
    curve,
    class,
    n,
    'model' AS basis,
    e_from,
    e,
    implied(e, h, u, n) AS survival,
    NULL::DOUBLE AS at_least,
    NULL::DOUBLE AS at_most,
    lo,
    hi,
    CASE WHEN survival IS NOT NULL
        THEN constant_bound(n, mean_steps, longest, undated)
    END AS bound,
    pow(1 - e, n) AS naive,
    e_lo,
    e_hi,
    h,
    h_lo,
    h_hi,
    u,
    u_lo,
    u_hi,
    CASE WHEN n > reach THEN 1 ELSE kaplan_meier_lo END AS kaplan_meier_lo,
    kaplan_meier_hi,
    ops,
    undated,
    ungraded,
    by_budget,
    CASE
        WHEN h IS NULL THEN 'no_faults'
        WHEN u IS NULL THEN CASE WHEN ungraded > 0 THEN 'ungraded' ELSE 'no_clean_runs' END
        WHEN e IS NULL THEN 'no_error_rate'
        WHEN lo IS NULL OR hi IS NULL
            THEN coalesce(
                nullif(h_reason, 'conservative'), nullif(u_reason, 'conservative'), 'few_traces'
            )
        WHEN n > reach THEN 'extrapolated'
        ELSE 'conservative'
    END AS reason,
    scenarios
FROM bounded
UNION ALL
SELECT
    kaplan_meier.agent,
    kaplan_meier.model,
    NULL AS world,
    NULL AS measured_by,
    kaplan_meier.curve,
    NULL AS class,
    kaplan_meier.step AS n,
    'kaplan_meier' AS basis,
    CASE WHEN hazards.error.rate IS NOT NULL THEN 'store' END AS e_from,
    hazards.error.rate AS e,
    kaplan_meier.survival,
    kaplan_meier.at_least,
    kaplan_meier.at_most,
    kaplan_meier.lo,
    kaplan_meier.hi,
    NULL AS bound,
    pow(1 - hazards.error.rate, kaplan_meier.step) AS naive,
    hazards.error.lo AS e_lo,
    hazards.error.hi AS e_hi,
    NULL AS h,
    NULL AS h_lo,
    NULL AS h_hi,
    hazards.death.rate AS u,
    hazards.death.lo AS u_lo,
    hazards.sure_death.hi AS u_hi,
    kaplan_meier.lo AS kaplan_meier_lo,
    kaplan_meier.hi AS kaplan_meier_hi,
    NULL AS ops,
    hazards.undated,
    hazards.ungraded,
    hazards.by_budget,
    kaplan_meier.reason,
    hazards.scenarios
FROM observed AS kaplan_meier
JOIN hazards
    ON
        kaplan_meier.agent IS NOT DISTINCT FROM hazards.agent
        AND kaplan_meier.model IS NOT DISTINCT FROM hazards.model
        AND kaplan_meier.curve = hazards.curve
WHERE kaplan_meier.step IN (10, 20, 50);
