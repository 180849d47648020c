-- Failure causes of pipeline stages, per cohort or kind of run: number of stages and of runs.
--
-- A run counts once for each cause that any of its stages has, so shares add up to more than one.
-- cause NULL: there was no evidence for any (of imported runs only the end is known).
WITH runs AS (
    SELECT trajectory_id, workload, mode, arm, cohort
    FROM pipeline_runs
    WHERE condition = 'clean' AND whole AND coalesce(agent, '') NOT IN ('starter', 'golden')
),

sized AS (
    SELECT workload, mode, arm, cohort, count(*) AS of_runs
    FROM runs
    GROUP BY workload, mode, arm, cohort
),

failed AS (
    SELECT
        runs.workload,
        runs.mode,
        runs.arm,
        runs.cohort,
        stages.failure AS cause,
        count(*) AS cells,
        count(DISTINCT runs.trajectory_id) AS runs
    FROM runs
    JOIN stages USING (trajectory_id)
    WHERE stages.passed IS NOT true
    GROUP BY ALL
)

SELECT
    failed.*,
    sized.of_runs,
    failed.runs / sized.of_runs AS share,
    wilson_lo(failed.runs, sized.of_runs, 1.959963984540054) AS lo,
    wilson_hi(failed.runs, sized.of_runs, 1.959963984540054) AS hi
FROM failed
JOIN sized
    ON
        failed.workload IS NOT DISTINCT FROM sized.workload
        AND failed.mode IS NOT DISTINCT FROM sized.mode
        AND failed.arm IS NOT DISTINCT FROM sized.arm
        AND failed.cohort IS NOT DISTINCT FROM sized.cohort;
