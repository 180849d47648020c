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
    recovery_rate_of,
    recovery_rate_unknown,
    recovery_rate_least,
    recovery_rate_most,
    silent_rate,
    silent_rate_of,
    silent_rate_unknown,
    silent_rate_least,
    silent_rate_most,
    ends_right_rate,
    ends_right_rate_unknown,
    handled_rate,
    handled_rate_unknown,
    reason
FROM recovery
WHERE $model IS NULL OR model = $model
ORDER BY recovery_rate NULLS LAST, op, agent, model, world, measured_by;
