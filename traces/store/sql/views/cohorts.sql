-- Reference cohorts of RAMP's index: members, and the maximum of each measure among them.
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
