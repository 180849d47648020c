-- What was injected where, and with which outcome?
-- default: trajectory = null, n = 100
-- range: n = 0..
SELECT
    trajectory_id,
    injection_id,
    step,
    tool,
    op,
    place,
    persist,
    sham,
    state,
    unreached_reason,
    class,
    noticed,
    passed,
    baseline_valid
FROM judged_injections
WHERE $trajectory IS NULL OR trajectory_id = $trajectory
ORDER BY trajectory_id, seq, injection_id
LIMIT $n;
