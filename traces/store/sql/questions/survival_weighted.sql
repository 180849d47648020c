-- What follows for a run of n steps if tools fail as often, and in the ways, that a source shows?
-- default: weights = "{}", e = null, e_lo = null, e_hi = null, model = null
-- range: e = 0..1, e_lo = 0..1, e_hi = 0..1
--
-- weights: JSON, errors of the source by class, such as {"http_status": 12, "hang": 3}, and e the
-- share of its steps with one, e_lo and e_hi its interval; `weights=atlas:SOURCE` gives all four.
-- Estimand: the share of runs of n steps that are still good, as in the view survival, of whose
-- figures u, its interval and the observed curve come. h: how often runs end so after faults of a class, the
-- mean over the classes by their weights. covered: the share of the errors whose class some fault of this store
-- makes. What becomes of the others is unknown: at_least takes all of them as fatal, at_most none,
-- and there is a figure (survival) only if all are covered. lo and hi take the worst and the best end
-- of all of it at once (conservative). naive: (1 - e)^n, every error fatal.
-- Not for errors that look right: no source shows them. Nor may a source's errors be taken for those
-- of other tools: most are an agent's own mistakes.
WITH weighted AS (
    SELECT op, weight / sum(weight) OVER () AS weight
    FROM (
        SELECT key AS op, ($weights::JSON ->> key)::DOUBLE AS weight
        FROM (SELECT unnest(json_keys($weights::JSON)) AS key)
    )
    WHERE weight > 0
),

curved AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        trace,
        op,
        unnest([
            {'curve': 'ends_right', 'is_good': ends_right},
            {'curve': 'not_silently_wrong', 'is_good': handled}
        ], recursive := true)
    FROM judged_injections
    WHERE settled AND NOT sham
),

per_op AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        curve,
        trace,
        op,
        count(is_good)::DOUBLE AS k_cases,
        count(*) FILTER (is_good)::DOUBLE AS k_good
    FROM curved
    WHERE is_good IS NOT NULL
    GROUP BY agent, model, world, measured_by, curve, trace, op
),

scaled AS (
    SELECT
        per_op.*,
        weight / sum(k_cases) OVER (PARTITION BY agent, model, world, measured_by, curve, op)
            AS each_weighs
    FROM per_op
    JOIN weighted USING (op)
),

per_trace AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        curve,
        trace,
        list(DISTINCT op) AS some_ops,
        sum(each_weighs * k_good) AS good,
        sum(each_weighs * k_cases) AS cases,
        sum(each_weighs * each_weighs * k_cases) AS squares
    FROM scaled
    GROUP BY agent, model, world, measured_by, curve, trace
),

handling AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        curve,
        list_sort(list_distinct(flatten(list(some_ops)))) AS ops,
        sum(cases) AS covered,
        weighted(
            list(good ORDER BY trace), list(cases ORDER BY trace), list(squares ORDER BY trace)
        ) AS h
    FROM per_trace
    GROUP BY agent, model, world, measured_by, curve
),

-- h_least and h_most: of all errors, those of a class without faults taken as fatal, and as harmless.
joined AS (
    SELECT
        figures.*,
        handling.ops AS classes,
        coalesce(handling.covered, 0) AS covered,
        handling.h AS of_covered,
        coalesce(handling.covered * handling.h.rate, 0) AS h_least,
        coalesce(handling.covered * handling.h.lo, 0) AS h_least_lo,
        coalesce(1 - handling.covered * (1 - handling.h.rate), 1) AS h_most,
        coalesce(1 - handling.covered * (1 - handling.h.hi), 1) AS h_most_hi
    FROM survival AS figures
    LEFT JOIN handling
        ON
            figures.agent IS NOT DISTINCT FROM handling.agent
            AND figures.model IS NOT DISTINCT FROM handling.model
            AND figures.world IS NOT DISTINCT FROM handling.world
            AND figures.measured_by IS NOT DISTINCT FROM handling.measured_by
            AND figures.curve = handling.curve
    WHERE
        figures.basis = 'model'
        AND figures.class = 'loud'
        AND figures.e_from = 'assumed'
        AND figures.e = 0.01
        AND ($model IS NULL OR figures.model = $model)
)

SELECT
    agent,
    model,
    world,
    measured_by,
    curve,
    n,
    $e::DOUBLE AS e,
    classes,
    covered,
    of_covered.rate AS h,
    CASE WHEN covered > 1 - 1e-9 THEN implied($e::DOUBLE, h_least, u, n) END AS survival,
    implied($e::DOUBLE, h_least, u, n) AS at_least,
    implied($e::DOUBLE, h_most, u, n) AS at_most,
    implied_lo(coalesce($e_hi, $e)::DOUBLE, h_least_lo, u_hi, n, kaplan_meier_lo) AS lo,
    implied_hi(coalesce($e_lo, $e)::DOUBLE, h_most_hi, u_lo, n, kaplan_meier_hi) AS hi,
    pow(1 - $e::DOUBLE, n) AS naive,
    CASE
        WHEN $e IS NULL THEN 'no_error_rate'
        WHEN covered = 0 THEN 'no_faults'
        WHEN covered <= 1 - 1e-9 THEN 'an_operator_has_no_injections'
        ELSE coalesce(nullif(of_covered.reason, 'conservative'), reason)
    END AS reason
FROM joined
ORDER BY agent, model, world, measured_by, curve, n;
