-- How do pipeline scores stand beside recovery? Runs of a cohort, best first.
-- default: cohort = null
SELECT
    cohort,
    agent,
    model,
    tier,
    pl,
    mr,
    pass_score,
    aei,
    seconds,
    cost_usd,
    tokens,
    recovery_rate,
    silent_rate,
    survival_20,
    survival_50
FROM leaderboard
WHERE $cohort IS NULL OR cohort = $cohort
ORDER BY cohort, mr DESC NULLS LAST, model;
