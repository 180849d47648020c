-- What does that imply for a run of n steps? Implied (model), observed (km) and the naive figure.
-- default: model = null
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
WHERE $model IS NULL OR model = $model
ORDER BY agent, model, world, basis, e_from DESC, e, n;
