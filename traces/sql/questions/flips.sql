-- Which injections came out otherwise under B than under A? The pairs of `compare` whose class differs.
-- default: a = "", b = "", by = "campaign", campaign = null
WITH sides AS (
    SELECT
        *,
        CASE $by WHEN 'model' THEN model WHEN 'agent' THEN agent ELSE campaign END AS side,
        CASE WHEN $by = 'campaign' THEN '' ELSE campaign END AS within
    FROM cells
    WHERE NOT sham AND ($campaign IS NULL OR campaign = $campaign)
)

SELECT
    a.paired_by AS trace,
    cell,
    op,
    a.class AS class_a,
    b.class AS class_b,
    a.injection_id AS injection_a,
    b.injection_id AS injection_b
FROM sides AS a
JOIN sides AS b USING (within, paired_by, cell, op)
WHERE a.side = $a AND b.side = $b AND a.class IS DISTINCT FROM b.class
ORDER BY a.paired_by, cell, op;
