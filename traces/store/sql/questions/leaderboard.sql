-- How do pipeline scores compare with recovery? Each agent and model, best first of each kind of run.
-- default: cohort = null
SELECT
    cohort,
    agent,
    model,
    runs,
    tier,
    pl,
    mr,
    mr_lo,
    mr_hi,
    pass_score,
    aei,
    gated_aei,
    seconds,
    cost_usd,
    ramp_tokens,
    recovery_rate,
    silent_rate,
    survival_20,
    survival_50,
    workload,
    mode,
    arm,
    stage_set,
    verified
FROM leaderboard
WHERE $cohort IS NULL OR cohort = $cohort
ORDER BY cohort, workload, mode, arm, stage_set, verified DESC NULLS FIRST, mr DESC NULLS LAST, model;
