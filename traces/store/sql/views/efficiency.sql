-- RAMP's efficiency index of every pipeline run against every cohort, its own or another.
--
-- A run of some stages only has none. A run of another cohort, or of none, does not move that cohort's maxima. idle_aei: what a run
-- would score that hands in what it was given and takes nothing.
SELECT
    trajectory_id,
    cohorts.cohort,
    pipeline_runs.cohort IS NOT DISTINCT FROM cohorts.cohort AS is_member,
    CASE
        WHEN stage_set = 'T0 T1 T2 T3 T4 T5'
            THEN ramp_aei(tier, mr, seconds, cost_usd, ramp_tokens, most)
    END AS aei,
    ramp_aei(0, idle_mr, 0, 0, 0, most) AS idle_aei,
    cohorts.runs,
    cohorts.most
FROM pipeline_runs
CROSS JOIN cohorts;
