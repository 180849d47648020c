-- What follows for a run of n steps? Implied (model), observed (kaplan_meier) and the naive figure.
-- default: model = null, e = null, e_quiet = null
-- range: e = 0..1, e_quiet = 0..1
--
-- The rows of the view survival; e is a rate of the errors of each class in its stead. With e_quiet
-- e is that of loud errors, and class `loud and quiet` has steps with either: (1 - e (1 - h of loud)
-- - e_quiet (1 - h of quiet) - u)^n. A quiet rate is an assumption, as nobody sees these errors.
WITH figures AS MATERIALIZED (FROM survival)

SELECT
    agent,
    model,
    world,
    measured_by,
    curve,
    class,
    n,
    basis,
    e_from,
    e,
    NULL::DOUBLE AS e_quiet,
    survival,
    at_least,
    at_most,
    lo,
    hi,
    bound,
    naive,
    reason
FROM figures
WHERE ($model IS NULL OR model = $model) AND (basis = 'kaplan_meier' OR ($e IS NULL AND $e_quiet IS NULL))
UNION ALL
-- The same with an error rate that is given: what the assumed 1 % knew of h and u.
SELECT
    agent,
    model,
    world,
    measured_by,
    curve,
    class,
    n,
    basis,
    'given' AS e_from,
    $e::DOUBLE AS e,
    NULL AS e_quiet,
    implied($e::DOUBLE, h, u, n) AS survival,
    NULL AS at_least,
    NULL AS at_most,
    implied_lo($e::DOUBLE, h_lo, u_hi, n, kaplan_meier_lo) AS lo,
    implied_hi($e::DOUBLE, h_hi, u_lo, n, kaplan_meier_hi) AS hi,
    bound,
    pow(1 - $e::DOUBLE, n) AS naive,
    reason
FROM figures
WHERE
    $e IS NOT NULL
    AND $e_quiet IS NULL
    AND ($model IS NULL OR model = $model)
    AND basis = 'model'
    AND e_from = 'assumed'
    AND e = 0.01
UNION ALL
SELECT
    loud.agent,
    loud.model,
    loud.world,
    loud.measured_by,
    loud.curve,
    'loud and quiet' AS class,
    loud.n,
    loud.basis,
    'given' AS e_from,
    coalesce($e::DOUBLE, loud.e) AS e,
    $e_quiet::DOUBLE AS e_quiet,
    implied(1, 1 - of_both(coalesce($e, loud.e), loud.h, $e_quiet, quiet.h), loud.u, loud.n)
        AS survival,
    NULL AS at_least,
    NULL AS at_most,
    implied_lo(
        1,
        1 - of_both(coalesce($e, loud.e_hi), loud.h_lo, $e_quiet, quiet.h_lo),
        loud.u_hi,
        loud.n,
        loud.kaplan_meier_lo
    ) AS lo,
    implied_hi(
        1,
        1 - of_both(coalesce($e, loud.e_lo), loud.h_hi, $e_quiet, quiet.h_hi),
        loud.u_lo,
        loud.n,
        loud.kaplan_meier_hi
    ) AS hi,
    loud.bound,
    pow(greatest(0, 1 - coalesce($e, loud.e)::DOUBLE - $e_quiet::DOUBLE), loud.n) AS naive,
    CASE WHEN loud.h IS NULL OR quiet.h IS NULL THEN 'no_faults' ELSE loud.reason END AS reason
FROM figures AS loud
JOIN figures AS quiet
    ON
        loud.agent IS NOT DISTINCT FROM quiet.agent
        AND loud.model IS NOT DISTINCT FROM quiet.model
        AND loud.world IS NOT DISTINCT FROM quiet.world
        AND loud.measured_by IS NOT DISTINCT FROM quiet.measured_by
        AND loud.curve = quiet.curve
        AND loud.n = quiet.n
WHERE
    $e_quiet IS NOT NULL
    AND ($model IS NULL OR loud.model = $model)
    AND loud.class = 'loud'
    AND loud.e_from = 'store'
    AND quiet.class = 'quiet'
    AND quiet.e = 0.01
ORDER BY agent, model, world, measured_by, curve, basis, class, e_from DESC, e, n;
