-- Which runs are there? Newest first.
-- default: n = 20
-- range: n = 0..
SELECT
    trajectory_id,
    recorded_at,
    agent,
    model,
    scenario,
    task,
    trial,
    condition,
    world,
    parent_id,
    n_steps,
    passed,
    ended,
    seconds,
    cost_usd
FROM trajectories
ORDER BY recorded_at DESC NULLS LAST, scenario, task, trial, trajectory_id
LIMIT $n;
