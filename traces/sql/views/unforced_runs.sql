-- Clean runs from their first step, nothing injected, no fork, no pipeline: what hazards are of.
--
-- died: not passed, and not censored. A run that a budget, our harness or the end of a recording
-- stopped is censored at its last step, and so is one whose verdict is unknown unless it crashed.
-- error_steps counts steps of which at least one tool call failed; NULL unless each call says.
WITH calls AS (
    SELECT
        trajectory_id,
        count(*) AS k_calls,
        count(*) FILTER (is_error IS NULL) AS k_unknown,
        count(DISTINCT step) FILTER (is_error) AS k_error_steps
    FROM tool_calls
    GROUP BY trajectory_id
)

SELECT
    t.trajectory_id,
    t.agent,
    t.model,
    t.scenario,
    coalesce(t.task, t.trajectory_id) AS task,
    t.n_steps,
    t.passed IS NOT true AND (
        coalesce(t.ended = 'crash', false)
        OR (
            t.passed IS NOT NULL
            AND coalesce(t.ended NOT IN ('budget', 'harness', 'diverged', 'replay_miss'), true)
        )
    ) AS died,
    CASE WHEN coalesce(calls.k_unknown, 0) = 0 THEN least(coalesce(k_error_steps, 0), t.n_steps) END
        AS error_steps
FROM trajectories AS t
LEFT JOIN calls USING (trajectory_id)
WHERE
    t.condition = 'clean'
    AND t.parent_id IS NULL
    AND t.n_steps > 0
    AND t.trajectory_id NOT IN (SELECT trajectory_id FROM injections WHERE trajectory_id IS NOT NULL)
    AND t.trajectory_id NOT IN (SELECT trajectory_id FROM stages WHERE trajectory_id IS NOT NULL);
