-- How would models compare under one mix of faults? Rates standardised to fixed operator weights.
-- default: weights = null, model = null
--
-- weights: JSON, such as {"e1": 2, "v4": 1}; without it each operator that struck anybody weighs the
-- same. NULL where a weighted operator has no judged injection: a mix without it is another
-- estimand. Wilson on the effective n of the linearised residuals per trace, t for traces - 1.
WITH weighted AS (
    SELECT op, weight / sum(weight) OVER () AS weight
    FROM (
        SELECT op, 1.0 AS weight
        FROM (SELECT DISTINCT op FROM strikes WHERE judged AND NOT sham)
        WHERE $weights IS NULL
        UNION ALL
        SELECT key AS op, json_extract($weights::JSON, '$."' || key || '"')::DOUBLE AS weight
        FROM (SELECT unnest(json_keys($weights::JSON)) AS key)
    )
    WHERE weight > 0
),

per_trace AS (
    SELECT
        agent,
        model,
        world,
        op,
        trace,
        count(*)::DOUBLE AS n,
        count(*) FILTER (class = 'recovered')::DOUBLE AS k_recovered,
        count(*) FILTER (class = 'silent_wrong')::DOUBLE AS k_silent,
        count(*) FILTER (class IN ('recovered', 'masked', 'honest_fail'))::DOUBLE AS k_safe
    FROM strikes
    WHERE judged AND NOT sham AND ($model IS NULL OR model = $model)
    GROUP BY agent, model, world, op, trace
),

long AS (
    UNPIVOT per_trace
    ON k_recovered AS recovered, k_silent AS silent_wrong, k_safe AS safe
    INTO NAME rate VALUE y
),

per_op AS (
    SELECT agent, model, world, rate, op, sum(y) / sum(n) AS r, sum(n) AS n_op
    FROM long
    GROUP BY agent, model, world, rate, op
),

whole AS (
    SELECT
        agent,
        model,
        world,
        rate,
        sum(weight * r) AS r,
        sum(weight) AS covered,
        sum(n_op)::BIGINT AS judged,
        list_sort(list(op)) AS ops
    FROM per_op
    JOIN weighted USING (op)
    GROUP BY agent, model, world, rate
),

residuals AS (
    SELECT
        long.agent,
        long.model,
        long.world,
        long.rate,
        long.trace,
        sum(weighted.weight * (long.y - per_op.r * long.n) / per_op.n_op) AS residual
    FROM long
    JOIN weighted USING (op)
    JOIN per_op
        ON
            long.op = per_op.op
            AND long.rate = per_op.rate
            AND long.agent IS NOT DISTINCT FROM per_op.agent
            AND long.model IS NOT DISTINCT FROM per_op.model
            AND long.world IS NOT DISTINCT FROM per_op.world
    GROUP BY long.agent, long.model, long.world, long.rate, long.trace
),

spread AS (
    SELECT
        agent,
        model,
        world,
        rate,
        count(*) AS traces,
        count(*) / nullif(count(*) - 1.0, 0) * sum(residual * residual) AS variance
    FROM residuals
    GROUP BY agent, model, world, rate
),

sized AS (
    SELECT
        whole.*,
        spread.traces,
        abs(covered - 1) < 1e-9 AS complete,
        least(judged / 0.8, r * (1 - r) / nullif(variance, 0)) AS n_eff
    FROM whole
    JOIN spread
        ON
            whole.rate = spread.rate
            AND whole.agent IS NOT DISTINCT FROM spread.agent
            AND whole.model IS NOT DISTINCT FROM spread.model
            AND whole.world IS NOT DISTINCT FROM spread.world
)

SELECT
    agent,
    model,
    world,
    rate,
    ops,
    judged,
    traces,
    n_eff,
    CASE WHEN complete THEN r END AS standardised,
    CASE WHEN complete AND traces >= 5 THEN wilson_lo(r * n_eff, n_eff, t975(traces - 1)) END AS lo,
    CASE WHEN complete AND traces >= 5 THEN wilson_hi(r * n_eff, n_eff, t975(traces - 1)) END AS hi,
    CASE
        WHEN NOT complete THEN 'an_operator_has_no_injections'
        WHEN traces < 5 THEN 'few_traces'
        WHEN n_eff IS NULL THEN 'all_traces_agree'
    END AS reason
FROM sized
ORDER BY agent, model, world, rate;
