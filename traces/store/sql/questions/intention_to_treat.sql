-- What about faults that never arrived? Silent failure by intention to treat and per protocol.
-- default: model = null
--
-- Intention to treat: of all injections that were planned and whose end is known; one that did not
-- reach the agent cannot fail silently, and counts as that. Per protocol: of the judged alone, the
-- rate recovery gives. trigger_rate: the share of the planned that reached the agent.
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
        count(*) FILTER (judged OR settled OR state = 'unfired') AS k_known,
        count(*) FILTER (judged) AS k_judged,
        count(*) FILTER (judged AND class = 'silent_wrong') AS k_silent
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
    reached / nullif(planned, 0) AS trigger_rate,
    itt.rate AS itt_silent_rate,
    itt.lo AS itt_lo,
    itt.hi AS itt_hi,
    per_protocol.rate AS silent_rate,
    per_protocol.lo AS lo,
    per_protocol.hi AS hi,
    coalesce(per_protocol.reason, itt.reason) AS reason
FROM rates
ORDER BY agent, model, world, measured_by, op;
