-- Deaths per step over tasks with an interval: {hits, cases, clusters, rate, lo, hi, reason}.
--
-- hazard_over(list(deaths), list(steps), list(runs), longest) takes one number each per task, as
-- DOUBLE, and the steps of the longest run. Formula: rate is deaths / steps. Who dies early leaves
-- few steps, so steps are no cases whose number says nothing of their rate: lo and hi are those of
-- the deaths of a run over those of its steps (a share of longest), each a clustered rate over runs
-- at 97.5 %, the worst end of one over the other end of the other: 95 % by Bonferroni, and
-- conservative. Without a death hi is the exact bound on tasks: tasks not drawn may be worse than
-- all that were. Coverage, simulated in tests/statistical/grids: at least .94.
CREATE MACRO hazard_over(death_list, step_list, run_list, longest) AS
[
    {
        'hits': pair.dying.hits,
        'cases': pair.steps,
        'clusters': pair.dying.clusters,
        'rate': pair.dying.hits / nullif(pair.steps, 0),
        'lo': pair.dying.lo / (pair.lasting.hi * pair.longest),
        'hi': CASE WHEN pair.lasting.lo IS NOT NULL
            THEN pair.dying.hi / greatest(pair.lasting.lo * pair.longest, pair.dying.hi)
        END,
        'reason': coalesce(newcombe_reason(pair.dying, pair.lasting), 'conservative')
    }
    FOR pair IN [
        {
            'steps': list_sum(told.steps),
            'longest': told.longest,
            'dying': clustered_at(told.deaths, told.runs, 0.975),
            'lasting': clustered_at(
                told.steps, list_transform(told.runs, lambda each: each * told.longest), 0.975
            )
        }
        FOR told IN [
            {
                'deaths': death_list,
                'steps': step_list,
                'runs': run_list,
                'longest': coalesce(longest, 0)::DOUBLE
            }
        ]
    ]
][1];
