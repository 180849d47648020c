-- What does that imply for a run of n steps? Implied (model), observed (km) and the naive figure.
-- default: model = null, e = null
-- range: e = 0..1
SELECT
    agent,
    model,
    world,
    n,
    basis,
    e_from,
    e,
    survival,
    lo,
    hi,
    naive,
    reason
FROM survival
WHERE ($model IS NULL OR model = $model) AND (basis = 'km' OR $e IS NULL)
UNION ALL
-- The same with an error rate that is given: what the assumed 1 % knew of h and u.
SELECT
    agent,
    model,
    world,
    n,
    basis,
    'given' AS e_from,
    $e::DOUBLE AS e,
    implied($e::DOUBLE, h, u, n) AS survival,
    implied($e::DOUBLE, h_lo, u_hi, n) AS lo,
    implied($e::DOUBLE, h_hi, u_lo, n) AS hi,
    pow(1 - $e::DOUBLE, n) AS naive,
    reason
FROM survival
WHERE
    $e IS NOT NULL
    AND ($model IS NULL OR model = $model)
    AND basis = 'model'
    AND e_from = 'assumed'
    AND e = 0.01
ORDER BY agent, model, world, basis, e_from DESC, e, n;
