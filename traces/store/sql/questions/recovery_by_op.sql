-- Which faults does the agent recover from? Recovery and handling per operator, worst first.
-- default: model = null
--
-- Another judge version, or another verifier of the same recordings, is another row (measured_by).
SELECT
    op,
    agent,
    model,
    world,
    measured_by,
    fired,
    absorbed,
    consumed,
    traces,
    recovery_rate,
    lo,
    hi,
    silent_rate,
    handled_rate,
    reason
FROM recovery
WHERE $model IS NULL OR model = $model
ORDER BY recovery_rate NULLS LAST, op, agent, model, world, measured_by;
