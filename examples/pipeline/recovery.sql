-- What became of the campaign's faults, one row for each stage that they were injected into:
--
--   stumble sql -- "$(cat recovery.sql)"
--
-- before and after are the mean scores of that stage in the recording and in the runs in which a fault
-- fired; mr, mr_least and aei (gated) are of these whole runs. aei needs an untouched workspace in the
-- same store: `stumble pipeline grade --starter python`.
WITH runs AS (
    SELECT
        trajectory_id,
        parent_id,
        regexp_extract(cell, 'stage=(T[0-5])', 1) AS stage
    FROM trajectories
    WHERE campaign = 'pipeline-recovery' AND condition = 'fault'
),

struck AS (
    SELECT
        runs.*,
        injections.injection_id IS NOT NULL AS fired,
        outcomes.class,
        pipeline_runs.resurrections,
        pipeline_runs.mr,
        pipeline_runs.gated_aei,
        recorded.score AS before,
        own.score AS after
    FROM runs
    LEFT JOIN injections USING (trajectory_id)
    LEFT JOIN outcomes USING (injection_id)
    LEFT JOIN pipeline_runs USING (trajectory_id)
    LEFT JOIN stages AS recorded
        ON recorded.trajectory_id = runs.parent_id AND recorded.stage = runs.stage
    LEFT JOIN stages AS own
        ON own.trajectory_id = runs.trajectory_id AND own.stage = runs.stage
)

SELECT
    stage,
    count(*) AS faults,
    count(*) FILTER (fired) AS fired,
    count(*) FILTER (class = 'recovered') AS recovered,
    count(*) FILTER (class = 'masked') AS masked,
    count(*) FILTER (class = 'silent_wrong') AS silent_wrong,
    count(*) FILTER (fired AND coalesce(class NOT IN ('recovered', 'masked', 'silent_wrong'), true)) AS other,
    sum(resurrections) FILTER (fired) AS resurrected,
    round(avg(before) FILTER (fired), 1) AS before,
    round(avg(after) FILTER (fired), 1) AS after,
    round(avg(mr) FILTER (fired), 2) AS mr,
    round(min(mr) FILTER (fired), 2) AS mr_least,
    round(avg(gated_aei) FILTER (fired), 2) AS aei
FROM struck
GROUP BY stage
ORDER BY stage
