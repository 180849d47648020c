-- What does a step cost, and why? 1 - e (1 - h) - u: errors that were not handled, and all else.
-- default: model = null, e = null
-- range: e = 0..1
--
-- e: share of steps with a failed tool call, from the store or as given; h: handled_rate, each
-- operator with the same weight; u: deaths per step of unforced runs. NULL where a part is.
SELECT
    agent,
    model,
    world,
    CASE WHEN $e IS NULL THEN e_from ELSE 'given' END AS e_from,
    coalesce($e::DOUBLE, e) AS e,
    h,
    u,
    coalesce($e::DOUBLE, e) * (1 - h) AS lost_to_errors,
    u AS lost_to_all_else,
    implied(coalesce($e::DOUBLE, e), h, u, 1) AS p_eff,
    half_life(implied(coalesce($e::DOUBLE, e), h, u, 1)) AS half_life,
    1 - coalesce($e::DOUBLE, e) AS naive,
    CASE
        WHEN h IS NULL THEN 'no_faults'
        WHEN u IS NULL THEN 'no_clean_runs'
        WHEN coalesce($e::DOUBLE, e) IS NULL THEN 'no_error_rate'
    END AS reason
FROM survival
WHERE
    basis = 'model'
    AND n = 10
    AND ($model IS NULL OR model = $model)
    AND ($e IS NULL OR (e_from = 'assumed' AND e = 0.01))
ORDER BY agent, model, world, e_from DESC, e;
