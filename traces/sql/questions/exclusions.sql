-- Which faults count for what, and which for nothing? Each one once, under the first reason that fits.
--
-- unfired first (no_site, not_fired), then runs cut off by the harness or by the end of the
-- recording (cut_off), then failing or unknown baselines, then what could not be decided.
SELECT
    agent,
    model,
    world,
    op,
    CASE
        WHEN state = 'unfired' THEN unreached_reason
        WHEN broken THEN 'cut_off'
        WHEN baseline_valid = false THEN 'baseline_failed'
        WHEN judged OR state IN ('absorbed', 'ended_before', 'undecided')
            THEN CASE WHEN judged THEN 'judged' ELSE state END
        WHEN baseline_valid IS NULL THEN 'baseline_unknown'
        ELSE 'no_verdict'
    END AS fate,
    count(*) AS faults
FROM strikes
WHERE NOT sham
GROUP BY agent, model, world, op, fate
ORDER BY agent, model, world, op, fate;
