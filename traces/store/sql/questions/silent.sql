-- Where did the agent confidently deliver a wrong result, without noticing?
-- default: op = null, n = 20
-- range: n = 0..
SELECT
    judged_injections.trajectory_id,
    judged_injections.injection_id,
    judged_injections.op,
    judged_injections.tool,
    judged_injections.step,
    verdict.first_use_step,
    judged_injections.detect,
    judged_injections.original,
    judged_injections.mutated,
    verdict.evidence
FROM judged_injections
JOIN verdicts AS verdict USING (injection_id)
WHERE
    judged_injections.class = 'silent_wrong'
    AND NOT judged_injections.sham
    AND ($op IS NULL OR judged_injections.op = $op)
ORDER BY judged_injections.op, judged_injections.trajectory_id, judged_injections.step
LIMIT $n;
