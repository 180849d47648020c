-- Where did the agent deliver something wrong with confidence, and never noticed?
-- default: op = null, n = 20
-- range: n = 0..
SELECT
    strikes.trajectory_id,
    strikes.injection_id,
    strikes.op,
    strikes.tool,
    strikes.step,
    verdict.first_use_step,
    strikes.detect,
    strikes.original,
    strikes.mutated,
    verdict.evidence
FROM strikes
JOIN verdicts AS verdict USING (injection_id)
WHERE
    strikes.class = 'silent_wrong'
    AND NOT strikes.sham
    AND ($op IS NULL OR strikes.op = $op)
ORDER BY strikes.op, strikes.trajectory_id, strikes.step
LIMIT $n;
