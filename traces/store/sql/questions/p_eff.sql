-- How much does a step cost, and why? 1 - e (1 - h) - u: badly ended errors of a class, and the rest.
-- default: model = null, e = null
-- range: e = 0..1
--
-- As the view survival, for one step: e is the share of steps with an error of that class, from the
-- store (loud ones), assumed to be 1, 2 or 5 %, or as given; h how often runs end well after one, by
-- the curve; u deaths per step of unforced runs. NULL where a part is. half_life is of a model with
-- one hazard, and a bound if tasks or steps differ.
SELECT
    agent,
    model,
    world,
    measured_by,
    curve,
    class,
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
        WHEN u IS NULL THEN reason
        WHEN coalesce($e::DOUBLE, e) IS NULL THEN 'no_error_rate'
    END AS reason
FROM survival
WHERE
    basis = 'model'
    AND n = 10
    AND ($model IS NULL OR model = $model)
    AND ($e IS NULL OR (e_from = 'assumed' AND e = 0.01))
ORDER BY agent, model, world, measured_by, curve, class, e_from DESC, e;
