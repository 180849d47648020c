-- Does it notice faults, or see them everywhere? Hits and false alarms on shams, per detectability.
-- default: model = null, sensitivity = 1.0, specificity = 1.0
-- range: sensitivity = 0..1, specificity = 0..1
--
-- detect NULL: all faults together. d_prime is NULL where a rate is 0 or 1. youden is the
-- difference, its interval that of two independent rates (Newcombe). corrected: the hit rate behind
-- a judge of that sensitivity and specificity (Rogan and Gladen), to be measured on >= 100 labels.
-- _unknown counts those of which it is not known if they were noticed, _least and _most are the rate
-- with all of them against and for.
-- Another judge version, or another verifier of the same recordings, is another row (measured_by),
-- and is set against its own shams only.
WITH per_trace AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        sham,
        detect,
        trace,
        count(*) FILTER (known)::DOUBLE AS n,
        count(*) FILTER (known AND noticed)::DOUBLE AS y,
        count(*) FILTER (NOT known)::DOUBLE AS k_unknown
    FROM (
        SELECT
            *,
            state = 'consumed' AND noticed IS NOT NULL AND NOT broken AND (sham OR judged) AS known
        FROM judged_injections
    )
    WHERE
        ($model IS NULL OR model = $model)
        AND (
            known
            OR state IN ('consumed', 'undecided') AND noticed IS NULL AND NOT several_faults
            AND coalesce(baseline_valid, true)
            AND (class IS DISTINCT FROM 'crashed' OR steps_after IS NOT NULL)
        )
    GROUP BY GROUPING SETS (
        (agent, model, world, measured_by, sham, trace),
        (agent, model, world, measured_by, sham, trace, detect)
    )
    HAVING grouping(detect) = 1 OR (detect IS NOT NULL AND NOT sham)
),

rates AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        sham,
        detect,
        clustered(list(y), list(n)) AS notice,
        unknown_bounds(sum(y), sum(n), sum(k_unknown)) AS bounds
    FROM per_trace
    GROUP BY agent, model, world, measured_by, sham, detect
)

SELECT
    fault.agent,
    fault.model,
    fault.world,
    fault.measured_by,
    fault.detect,
    fault.notice.cases::BIGINT AS faults,
    sham.notice.cases::BIGINT AS shams,
    fault.notice.rate AS hit,
    fault.notice.lo AS hit_lo,
    fault.notice.hi AS hit_hi,
    fault.bounds.unknown AS hit_unknown,
    fault.bounds.least AS hit_least,
    fault.bounds.most AS hit_most,
    sham.notice.rate AS false_alarm,
    sham.notice.lo AS false_alarm_lo,
    sham.notice.hi AS false_alarm_hi,
    coalesce(sham.bounds.unknown, 0) AS false_alarm_unknown,
    sham.bounds.least AS false_alarm_least,
    sham.bounds.most AS false_alarm_most,
    d_prime(fault.notice.rate, sham.notice.rate) AS d_prime,
    youden(fault.notice.rate, sham.notice.rate) AS youden,
    newcombe_lo(fault.notice, sham.notice) AS youden_lo,
    newcombe_hi(fault.notice, sham.notice) AS youden_hi,
    rogan_gladen(fault.notice.rate, $sensitivity, $specificity) AS corrected,
    CASE
        WHEN sham.notice IS NULL THEN 'no_shams'
        WHEN fault.notice.rate IN (0, 1) OR sham.notice.rate IN (0, 1) THEN 'a_rate_of_0_or_1'
        ELSE coalesce(fault.notice.reason, sham.notice.reason)
    END AS reason
FROM rates AS fault
LEFT JOIN rates AS sham
    ON
        sham.sham
        AND fault.agent IS NOT DISTINCT FROM sham.agent
        AND fault.model IS NOT DISTINCT FROM sham.model
        AND fault.world IS NOT DISTINCT FROM sham.world
        AND fault.measured_by IS NOT DISTINCT FROM sham.measured_by
WHERE NOT fault.sham
ORDER BY fault.agent, fault.model, fault.world, fault.measured_by, fault.detect NULLS FIRST;
