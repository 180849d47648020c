-- Cells of the same trace under two campaign names, paired as rows (a, b).
--
-- kind: campaign, model or agent, what both are names of; within: NULL, or the only campaign that
-- counts. Where more than one has the name, those of one agent, model and world are a pair.
CREATE MACRO cell_pairs(kind, one, other, within) AS TABLE
WITH sides AS (
    SELECT
        *,
        CASE kind WHEN 'model' THEN model WHEN 'agent' THEN agent ELSE campaign END AS side,
        CASE WHEN kind = 'campaign' THEN '' ELSE campaign END AS plan,
        {
            'agent': CASE WHEN kind != 'agent' THEN agent END,
            'model': CASE WHEN kind != 'model' THEN model END,
            'world': world
        } AS whose
    FROM campaign_injections
    WHERE NOT sham AND (within IS NULL OR campaign = within)
)

SELECT a, b
FROM sides AS a
JOIN sides AS b USING (plan, paired_by, cell, op)
WHERE a.side = one AND b.side = other
QUALIFY
    a.whose = b.whose
    OR count(*) OVER (PARTITION BY a.injection_id) = 1
    AND count(*) OVER (PARTITION BY b.injection_id) = 1;
