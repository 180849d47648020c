-- Deaths per step over tasks with an interval: {hits, cases, clusters, rate, lo, hi, reason}.
--
-- hazard_over(list(deaths), list(steps), list(runs), longest) takes one number each per task, as
-- DOUBLE, and the steps of the longest run. Formula: rate is deaths / steps. Who dies early leaves
-- few steps, so steps are no cases whose number says nothing of their rate: lo and hi are those of
-- the deaths of a run over those of its steps (a share of longest), each a clustered rate over runs
-- at 97.5 %, the worst end of one over the other end of the other: 95 % by Bonferroni, and
-- conservative. Without a death hi is the exact bound on tasks: tasks not drawn may be worse than
-- all that were. Coverage, simulated in tests/statistical/grids: at least .94.
CREATE MACRO hazard_shares(death_list, step_list, run_list, longest) AS [
    {'hits': death_list, 'cases': run_list, 'squares': run_list},
    {
        'hits': step_list,
        'cases': list_transform(run_list, lambda runs: runs * coalesce(longest, 0)::DOUBLE),
        'squares': list_transform(run_list, lambda runs: runs * coalesce(longest, 0)::DOUBLE)
    }
];

CREATE MACRO hazard_of(dying, lasting, longest) AS {
    'hits': dying.hits,
    'cases': lasting.hits,
    'clusters': dying.clusters,
    'rate': dying.hits / nullif(lasting.hits, 0),
    'lo': dying.lo / (lasting.hi * coalesce(longest, 0)),
    'hi': CASE WHEN lasting.lo IS NOT NULL
        THEN dying.hi / greatest(lasting.lo * coalesce(longest, 0), dying.hi)
    END,
    'reason': coalesce(newcombe_reason(dying, lasting), 'conservative')
};

CREATE MACRO hazard_over(death_list, step_list, run_list, longest) AS
[
    hazard_of(rates[1], rates[2], longest)
    FOR rates IN [
        each_weighted_at(hazard_shares(death_list, step_list, run_list, longest), 0.975)
    ]
][1];

-- The same with deaths at the last step of their runs (late), and at the first they may have died at.
CREATE MACRO hazards_over(death_list, step_list, sure_step_list, run_list, longest) AS
[
    {
        'late': hazard_of(rates[1], rates[2], longest),
        'early': hazard_of(rates[3], rates[4], longest)
    }
    FOR rates IN [
        each_weighted_at(
            list_concat(
                hazard_shares(death_list, step_list, run_list, longest),
                hazard_shares(death_list, sure_step_list, run_list, longest)
            ),
            0.975
        )
    ]
][1];
