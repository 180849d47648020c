-- Clean runs from their first step, nothing injected, no fork, no pipeline, and how each ended.
--
-- died: not passed, and not censored. A run that a budget, our harness or the end of a recording
-- stopped is censored at its last step, and so is one whose verdict is unknown unless it crashed.
SELECT
    trajectory_id,
    agent,
    model,
    scenario,
    coalesce(task, trajectory_id) AS task,
    n_steps,
    passed IS NOT true AND (
        coalesce(ended = 'crash', false)
        OR (
            passed IS NOT NULL
            AND coalesce(ended NOT IN ('budget', 'harness', 'diverged', 'replay_miss'), true)
        )
    ) AS died
FROM trajectories
WHERE
    condition = 'clean'
    AND parent_id IS NULL
    AND n_steps > 0
    AND trajectory_id NOT IN (SELECT trajectory_id FROM injections WHERE trajectory_id IS NOT NULL)
    AND trajectory_id NOT IN (SELECT trajectory_id FROM stages WHERE trajectory_id IS NOT NULL);
