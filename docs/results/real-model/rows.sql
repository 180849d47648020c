-- One row per run of the study: what it was, and what became of it.
--
-- kind: recording (of which all others of a task fork), twin (nothing changed), sham (injected what was
-- there), or the fault. ends_right: the verifier's word on the shop, whatever the baseline did. class,
-- state and excluded are of faults and shams; a class needs a baseline that passes.
SELECT
    regexp_extract(t.model, 't=([0-9.]+)', 1) AS temperature,
    t.agent AS policy,
    t.task,
    CASE WHEN t.source = 'record' THEN 'recording' ELSE coalesce(j.op, 'twin') END AS kind,
    j.state,
    j.class,
    j.excluded,
    coalesce(t.passed, j.passed) AS ends_right,
    t.ended,
    t.n_steps AS steps,
    t.trajectory_id AS run
FROM trajectories AS t
LEFT JOIN judged_injections AS j USING (trajectory_id)
ORDER BY ALL
