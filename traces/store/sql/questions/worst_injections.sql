-- Which faults did the most harm? Delivered wrong as done first, then crashes, then what was noticed.
-- default: campaign = null, n = 3
-- range: n = 0..
SELECT
    injected.injection_id,
    injected.class AS outcome,
    injected.op,
    injected.tool,
    injected.model,
    left(injected.original, 60) AS original,
    left(injected.mutated, 60) AS injected
FROM judged_injections AS injected
JOIN trajectories USING (trajectory_id)
WHERE
    injected.class IN ('silent_wrong', 'crashed', 'noticed_wrong')
    AND NOT injected.sham
    AND ($campaign IS NULL OR trajectories.campaign = $campaign)
ORDER BY
    list_position(['silent_wrong', 'crashed', 'noticed_wrong'], injected.class),
    injected.op,
    injected.injection_id
LIMIT $n;
