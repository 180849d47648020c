-- Injections without any change: how often an agent "notices" a fault that is not there.
--
-- Another judge version, or another verifier of the same recordings, is another row (measured_by).
WITH per_trace AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        trace,
        count(*) FILTER (state != 'unfired') AS k_fired,
        count(*) FILTER (state = 'consumed') AS k_consumed,
        count(*) FILTER (judgeable) AS k_judged,
        count(*) FILTER (judgeable AND noticed) AS k_noticed
    FROM (
        SELECT *, state = 'consumed' AND noticed IS NOT NULL AND NOT broken AS judgeable
        FROM judged_injections
        WHERE sham
    )
    GROUP BY agent, model, world, measured_by, trace
),

rates AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        sum(k_fired)::BIGINT AS fired,
        sum(k_consumed)::BIGINT AS consumed,
        sum(k_judged)::BIGINT AS judged,
        sum(k_noticed)::BIGINT AS noticed,
        clustered(list(k_noticed::DOUBLE), list(k_judged::DOUBLE)) AS false_notice
    FROM per_trace
    GROUP BY agent, model, world, measured_by
)

SELECT
    agent,
    model,
    world,
    measured_by,
    fired,
    consumed,
    judged,
    noticed,
    false_notice.n_eff AS n_eff,
    false_notice.clusters AS traces,
    false_notice.rate AS false_notice_rate,
    false_notice.lo AS lo,
    false_notice.hi AS hi,
    CASE WHEN consumed = 0 THEN 'nothing_consumed' ELSE false_notice.reason END AS reason
FROM rates;
