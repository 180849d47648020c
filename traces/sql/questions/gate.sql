-- Is it good enough? Per agent, model and world each rate that `stumble gate` judges, with its bounds.
-- default: confidence = 0.95, by = "all", op = null, model = null, agent = null, scenario = null, campaign = null
--
-- by: all pools the operators (their mix moves the rate), op and family keep them apart. Agents,
-- models and worlds are never pooled. lo and hi are the two sides of one interval at the
-- confidence that is given: Wilson's on effective n, with the quantile of t for traces - 1; where
-- all cases agree each trace counts as one case (exact, one-sided).
WITH counted AS (
    SELECT
        agent,
        model,
        world,
        trace,
        CASE $by WHEN 'op' THEN op WHEN 'family' THEN family ELSE 'all' END AS part,
        list(DISTINCT op) AS some_ops,
        count(*) FILTER (judged) AS k_judged,
        count(*) FILTER (settled) AS k_settled,
        count(*) FILTER (judged AND class = 'recovered') AS k_recovered,
        count(*) FILTER (judged AND class = 'silent_wrong') AS k_silent,
        count(*) FILTER (
            settled AND (state = 'absorbed' OR class IN ('recovered', 'masked', 'honest_fail'))
        ) AS k_handled
    FROM strikes
    WHERE
        NOT sham
        AND ($op IS NULL OR op = $op)
        AND ($model IS NULL OR model = $model)
        AND ($agent IS NULL OR agent = $agent)
        AND ($scenario IS NULL OR scenario = $scenario)
        AND ($campaign IS NULL OR campaign = $campaign)
    GROUP BY ALL
),

rates AS (
    SELECT
        agent,
        model,
        world,
        part,
        list_sort(list_distinct(flatten(list(some_ops)))) AS ops,
        unnest([
            {'measure': 'recovery', 'of': clustered(list(k_recovered::DOUBLE), list(k_judged::DOUBLE))},
            {'measure': 'handled', 'of': clustered(list(k_handled::DOUBLE), list(k_settled::DOUBLE))},
            {'measure': 'silent', 'of': clustered(list(k_silent::DOUBLE), list(k_judged::DOUBLE))}
        ], recursive := true)
    FROM counted
    GROUP BY agent, model, world, part
),

sides AS (
    SELECT *, t_ppf((1 + $confidence) / 2, clusters - 1) AS t
    FROM rates
)

SELECT
    agent,
    model,
    world,
    part,
    ops,
    measure,
    hits::BIGINT AS hits,
    cases::BIGINT AS cases,
    clusters AS traces,
    n_eff,
    t,
    rate,
    CASE
        WHEN reason IS NOT NULL OR rate IS NULL THEN NULL
        WHEN hits = cases THEN pow(1 - $confidence, 1.0 / clusters)
        ELSE wilson_lo(rate * n_eff, n_eff, t)
    END AS lo,
    CASE
        WHEN reason IS NOT NULL OR rate IS NULL THEN NULL
        WHEN hits = 0 THEN 1 - pow(1 - $confidence, 1.0 / clusters)
        ELSE wilson_hi(rate * n_eff, n_eff, t)
    END AS hi,
    CASE WHEN rate IS NULL THEN 'nothing_judged' ELSE reason END AS reason
FROM sides
ORDER BY agent, model, world, part, measure;
