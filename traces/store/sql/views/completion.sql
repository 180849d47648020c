-- Number of pipeline runs that pass each stage, per cohort or kind of run: losses along the pipeline.
--
-- passed: score of 60 or more; serial: this stage and all before it; full: a score of 100. A stage
-- that was not run is not passed. rate leaves out runs in which the grader or the provider
-- failed at that stage (infrastructure errors), rate_all counts them as not passed; lo and hi (Wilson, 95 %) belong to
-- rate and take runs for independent, which those of one model are not.
WITH runs AS (
    SELECT trajectory_id, workload, mode, arm, cohort
    FROM pipeline_runs
    WHERE condition = 'clean' AND whole AND coalesce(agent, '') NOT IN ('starter', 'golden')
),

each_stage AS (
    SELECT
        runs.*,
        place.stage,
        coalesce(stages.score >= 60, false) AS is_passed,
        coalesce(stages.score = 100, false) AS is_full,
        coalesce(stages.outcome IN ('infrastructure_error', 'provider'), false) AS is_ours
    FROM runs
    CROSS JOIN (SELECT unnest(['T0', 'T1', 'T2', 'T3', 'T4', 'T5']) AS stage) AS place
    LEFT JOIN stages USING (trajectory_id, stage)
),

so_far AS (
    SELECT
        *,
        bool_and(is_passed) OVER (PARTITION BY trajectory_id ORDER BY stage) AS is_serial
    FROM each_stage
),

counted AS (
    SELECT
        workload,
        mode,
        arm,
        cohort,
        stage,
        count(*) AS runs,
        count(*) FILTER (is_passed) AS passed,
        count(*) FILTER (is_serial) AS serial,
        count(*) FILTER (is_full) AS full,
        count(*) FILTER (is_ours) AS infrastructure_errors,
        count(*) FILTER (NOT is_ours)::DOUBLE AS known
    FROM so_far
    GROUP BY workload, mode, arm, cohort, stage
)

SELECT
    * EXCLUDE (known),
    passed / nullif(known, 0) AS rate,
    wilson_lo(passed, nullif(known, 0), 1.959963984540054) AS lo,
    wilson_hi(passed, nullif(known, 0), 1.959963984540054) AS hi,
    passed / runs AS rate_all,
    serial / runs AS serial_rate,
    CASE WHEN known = 0 THEN 'no_cases' END AS reason
FROM counted
ORDER BY cohort, workload, mode, arm, stage;
