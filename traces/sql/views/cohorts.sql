-- Cohorts that RAMP's index is against: who is in each, and the most that one of them got or took.
SELECT
    cohort,
    count(*) AS runs,
    list_sort(list(DISTINCT model)) AS models,
    {
        'tier': max(tier),
        'mr': max(mr),
        'seconds': max(seconds),
        'cost_usd': max(cost_usd),
        'tokens': max(ramp_tokens)
    } AS most
FROM pipeline_runs
WHERE cohort IS NOT NULL
GROUP BY cohort;
