-- Which injections ended differently under B than under A? The pairs of `compare` whose class differs.
-- default: a = "", b = "", by = "campaign", campaign = null
--
-- A pair that was not measured alike is none: what differs may be the judge or the verifier.
SELECT
    a.paired_by AS trace,
    a.cell AS cell,
    a.op AS op,
    a.class AS class_a,
    b.class AS class_b,
    a.injection_id AS injection_a,
    b.injection_id AS injection_b
FROM cell_pairs($by, $a, $b, $campaign)
WHERE unlike IS NULL AND a.class IS DISTINCT FROM b.class
ORDER BY trace, cell, op;
