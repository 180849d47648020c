-- How would models compare under one mix of faults? Rates standardised to fixed operator weights.
-- default: weights = null, model = null
--
-- Estimand: the weighted mean over operators of the share of judged injections that were recovered
-- from (of those that could be noticed), silently wrong, or safe (recovered, masked, honestly
-- failed). weights: JSON, such as {"e1": 2, "v4": 1}; without it each operator that struck anybody
-- weighs the same. Formula: direct standardisation; an injection has its operator's weight over the
-- operator's cases, and the interval is that of a clustered rate of weighted cases (weighted).
-- NULL if a weighted operator has no such injection: a mix without it is another estimand.
-- Another judge version, or another verifier of the same recordings, is another row (measured_by).
-- Not for the rate in the wild, where nobody weighs faults alike.
WITH weighted AS (
    SELECT op, weight / sum(weight) OVER () AS weight
    FROM (
        SELECT op, 1.0 AS weight
        FROM (SELECT DISTINCT op FROM judged_injections WHERE judged AND NOT sham)
        WHERE $weights IS NULL
        UNION ALL
        SELECT key AS op, ($weights::JSON ->> key)::DOUBLE AS weight
        FROM (SELECT unnest(json_keys($weights::JSON)) AS key)
    )
    WHERE weight > 0
),

measured AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        op,
        trace,
        unnest([
            {'rate': 'recovered', 'hit': recovered, 'of': noticeable},
            {'rate': 'silent_wrong', 'hit': silent, 'of': judged},
            {'rate': 'safe', 'hit': class IN ('recovered', 'masked', 'honest_fail'), 'of': judged}
        ], recursive := true)
    FROM judged_injections
    WHERE judged AND NOT sham AND ($model IS NULL OR model = $model)
),

per_trace AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        rate,
        op,
        trace,
        count(*) FILTER (of AND hit)::DOUBLE AS k_hits,
        count(*) FILTER (of)::DOUBLE AS k_cases
    FROM measured
    GROUP BY agent, model, world, measured_by, rate, op, trace
),

scaled AS (
    SELECT
        per_trace.*,
        weighted.weight,
        weighted.weight / nullif(
            sum(k_cases) OVER (PARTITION BY agent, model, world, measured_by, rate, op), 0
        ) AS each_weighs
    FROM per_trace
    JOIN weighted USING (op)
),

clusters AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        rate,
        trace,
        list(DISTINCT op) FILTER (k_cases > 0) AS some_ops,
        sum(k_cases) AS k_cases,
        coalesce(sum(each_weighs * k_hits), 0) AS weighted_hits,
        coalesce(sum(each_weighs * k_cases), 0) AS weighted_cases,
        coalesce(sum(each_weighs * each_weighs * k_cases), 0) AS squares
    FROM scaled
    GROUP BY agent, model, world, measured_by, rate, trace
),

fitted AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        rate AS measure,
        list_sort(list_distinct(flatten(list(some_ops)))) AS ops,
        sum(k_cases)::BIGINT AS judged,
        weighted(
            list(weighted_hits ORDER BY trace),
            list(weighted_cases ORDER BY trace),
            list(squares ORDER BY trace)
        ) AS found
    FROM clusters
    GROUP BY agent, model, world, measured_by, rate
)

SELECT
    agent,
    model,
    world,
    measured_by,
    measure AS rate,
    ops,
    judged,
    found.clusters AS traces,
    found.n_eff AS n_eff,
    CASE WHEN complete THEN found.rate END AS standardised,
    CASE WHEN complete THEN found.lo END AS lo,
    CASE WHEN complete THEN found.hi END AS hi,
    CASE WHEN complete THEN found.reason ELSE 'an_operator_has_no_injections' END AS reason
FROM (SELECT *, len(ops) = (SELECT count(*) FROM weighted) AS complete FROM fitted)
ORDER BY agent, model, world, measured_by, rate;
