-- Which faults count, and which are excluded? Each one once, under the first reason that fits.
--
-- unfired first (no_site, not_fired), then runs cut off by the harness or by the end of the
-- recording (cut_off), then those that several faults struck (several_faults: the outcome is of all
-- together), then failing baselines, what could not be decided, fewer than three clean twins
-- (few_twins), twins whose end nobody knows (baseline_unknown), and an end that is not known.
SELECT
    agent,
    model,
    world,
    op,
    coalesce(excluded, CASE WHEN judged THEN 'judged' ELSE state END) AS fate,
    count(*) AS faults
FROM judged_injections
WHERE NOT sham
GROUP BY agent, model, world, op, fate
ORDER BY agent, model, world, op, fate;
