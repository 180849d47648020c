-- Cells of the same trace under two campaign names, paired as rows (a, b).
--
-- kind: campaign, model or agent, what both are names of; within: NULL, or the only campaign that
-- counts. Where more than one has the name, those of one agent, model and world are a pair.
-- unlike: mixed_judges or mixed_verifiers if a and b were not measured alike, so that what differs
-- may be the measure.
CREATE MACRO cell_pairs(kind, one, other, within) AS TABLE
WITH sides AS (
    SELECT
        c.*,
        coalesce(t.verifier_of, t.verifier) AS verifier_name,
        CASE kind WHEN 'model' THEN c.model WHEN 'agent' THEN c.agent ELSE c.campaign END AS side,
        CASE WHEN kind = 'campaign' THEN '' ELSE c.campaign END AS plan,
        {
            'agent': CASE WHEN kind != 'agent' THEN c.agent END,
            'model': CASE WHEN kind != 'model' THEN c.model END,
            'world': c.world
        } AS whose
    FROM campaign_injections AS c
    JOIN trajectories AS t USING (trajectory_id)
    WHERE NOT c.sham AND (within IS NULL OR c.campaign = within)
)

SELECT
    a,
    b,
    CASE
        WHEN a.measured_by.judge IS DISTINCT FROM b.measured_by.judge THEN 'mixed_judges'
        WHEN a.verifier_name != b.verifier_name THEN 'mixed_verifiers'
    END AS unlike
FROM sides AS a
JOIN sides AS b USING (plan, paired_by, cell, op)
WHERE a.side = one AND b.side = other
QUALIFY
    a.whose = b.whose
    OR count(*) OVER (PARTITION BY a.injection_id) = 1
    AND count(*) OVER (PARTITION BY b.injection_id) = 1;
