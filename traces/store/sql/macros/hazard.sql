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
            'steps': found.steps,
            'longest': found.longest,
            'dying': found.rates[1],
            'lasting': found.rates[2]
        }
        FOR found IN [
            {
                'steps': list_sum(told.steps),
                'longest': told.longest,
                'rates': [
                    clustered_at(rate.hits, rate.cases, 0.975) FOR rate IN [
                        {'hits': told.deaths, 'cases': told.runs},
                        {
                            'hits': told.steps,
                            'cases': list_transform(told.runs, lambda each: each * told.longest)
                        }
                    ]
                ]
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
    ]
][1];

-- The same with deaths at the last step of their runs (late), and at the first they may have died at.
--
-- In a list, and so is each rate above: what it is made of is planned once for both.
CREATE MACRO hazards_over(death_list, step_list, sure_step_list, run_list, longest) AS
[
    {'late': dated[1], 'early': dated[2]} FOR dated IN [
        [
            hazard_over(told.deaths, told.steps, told.runs, told.longest) FOR told IN [
                {
                    'deaths': death_list,
                    'steps': step_list,
                    'runs': run_list,
                    'longest': longest
                },
                {
                    'deaths': death_list,
                    'steps': sure_step_list,
                    'runs': run_list,
                    'longest': longest
                }
            ]
        ]
    ]
][1];
