-- Injections of campaigns with their cell and the trace they are paired by; the latest of repeated runs.
-- A cell that names another model is that of the others without the name.
SELECT
    s.*,
    regexp_replace(t.cell, '/model .*$', '') AS cell,
    coalesce(t.task, t.parent_id, t.trajectory_id) AS paired_by
FROM judged_injections AS s
JOIN trajectories AS t USING (trajectory_id)
WHERE t.cell IS NOT NULL
QUALIFY
    row_number() OVER (
        PARTITION BY t.campaign, t.agent, t.model, paired_by, t.cell, s.op
        ORDER BY t.recorded_at DESC, t.trajectory_id DESC
    ) = 1;
