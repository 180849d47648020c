-- What about faults that never arrived? Silent failure by intention to treat and per protocol.
-- default: model = null
--
-- Intention to treat: of all injections that were planned and whose end is known; one that did not
-- reach the agent cannot fail silently, and counts as that. Per protocol: of the consumed alone, the
-- rate recovery gives. unknown: of those whose silence is not known; least and most have them all
-- against and for. trigger_rate: the share of the planned that reached the agent.
-- Another judge version, or another verifier of the same recordings, is another row (measured_by).
WITH per_trace AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        op,
        trace,
        count(*) AS k_planned,
        count(*) FILTER (state = 'consumed') AS k_reached,
        count(*) FILTER (
            silent IS NOT NULL
            OR settled AND state IN ('absorbed', 'ended_before')
            OR state = 'unfired'
        ) AS k_known,
        count(silent) AS k_judged,
        count(*) FILTER (silent) AS k_silent,
        count(*) FILTER (unknown.silent) AS k_unknown
    FROM judged_injections
    WHERE NOT sham AND ($model IS NULL OR model = $model)
    GROUP BY agent, model, world, measured_by, op, trace
),

rates AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        op,
        sum(k_planned)::BIGINT AS planned,
        sum(k_reached)::BIGINT AS reached,
        sum(k_known)::BIGINT AS known,
        sum(k_judged)::BIGINT AS judged,
        sum(k_unknown)::BIGINT AS unknown,
        unknown_bounds(sum(k_silent), sum(k_known), sum(k_unknown)) AS itt_bounds,
        unknown_bounds(sum(k_silent), sum(k_judged), sum(k_unknown)) AS bounds,
        clustered(list(k_silent::DOUBLE), list(k_known::DOUBLE)) AS itt,
        clustered(list(k_silent::DOUBLE), list(k_judged::DOUBLE)) AS per_protocol
    FROM per_trace
    GROUP BY agent, model, world, measured_by, op
)

SELECT
    agent,
    model,
    world,
    measured_by,
    op,
    planned,
    reached,
    known,
    judged,
    unknown,
    reached / nullif(planned, 0) AS trigger_rate,
    itt.rate AS itt_silent_rate,
    itt.lo AS itt_lo,
    itt.hi AS itt_hi,
    itt_bounds.least AS itt_least,
    itt_bounds.most AS itt_most,
    per_protocol.rate AS silent_rate,
    per_protocol.lo AS lo,
    per_protocol.hi AS hi,
    bounds.least AS least,
    bounds.most AS most,
    coalesce(per_protocol.reason, itt.reason) AS reason
FROM rates
ORDER BY agent, model, world, measured_by, op;
