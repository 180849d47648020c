-- Strikes of campaigns, each with its cell and the trace it is paired by; of one run again the latest.
SELECT
    s.*,
    t.cell,
    coalesce(t.task, t.parent_id, t.trajectory_id) AS paired_by
FROM strikes AS s
JOIN trajectories AS t USING (trajectory_id)
WHERE t.cell IS NOT NULL
QUALIFY
    row_number() OVER (
        PARTITION BY t.campaign, t.agent, t.model, paired_by, t.cell, s.op
        ORDER BY t.recorded_at DESC, t.trajectory_id DESC
    ) = 1;
