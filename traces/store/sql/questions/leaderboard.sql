-- How do pipeline scores compare with recovery? Each agent and model of a cohort, best first.
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
    survival_50
FROM leaderboard
WHERE $cohort IS NULL OR cohort = $cohort
ORDER BY cohort, mr DESC NULLS LAST, model;
