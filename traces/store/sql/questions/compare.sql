-- What changed from A to B? Paired differences of the same traces, faults and seeds, by family and total.
-- default: a = "", b = "", by = "campaign", campaign = null
--
-- by: what a and b are names of: campaign, model or agent. A pair is the same cell of the same
-- trace under A and under B (the cell of a campaign names call, fault, persistence, seed and
-- repetition), of one agent, model and world where a name has several; where a cell was run again
-- the latest counts. Both must be known for the measure; what is left out is counted. Only what was measured alike is compared: a pair of two judge versions, or
-- of two verifiers, is left out, and where all are, the reason is mixed_judges or mixed_verifiers.
-- What another judge version, or another verifier of the same recordings, says is apart (measured_by).
-- Estimand: delta = rate_b - rate_a, each rate a mean over traces of the share of their pairs, so
-- that a trace with many pairs weighs as one with a few (the question recovery_by_model pools).
-- Formula: every trace weighs the same, the interval is that of what traces gained less what they
-- lost (gained_and_lost); p is that of Student's t over the traces' differences, which repeats
-- within a trace cannot narrow (if all traces differ alike, of the sign test); p_holm holds over
-- the families of a measure. p_mcnemar (mid-p) is for one pair per trace, and NULL with more.
-- Not for names that were struck by different faults: what has no pair is not in it.
WITH pairs AS (
    SELECT
        a.paired_by AS paired_by,
        a.family AS family,
        a.measured_by AS measured_by,
        unlike,
        a.recovered::INT AS recovered_a,
        b.recovered::INT AS recovered_b,
        a.silent::INT AS silent_a,
        b.silent::INT AS silent_b,
        a.handled::INT AS handled_a,
        b.handled::INT AS handled_b,
        a.ends_right::INT AS ends_right_a,
        b.ends_right::INT AS ends_right_b
    FROM cell_pairs($by, $a, $b, $campaign)
),

measured AS (
    SELECT
        paired_by,
        family,
        measured_by,
        unlike,
        unnest([
            {'measure': 'recovery', 'x': recovered_a, 'y': recovered_b},
            {'measure': 'silent', 'x': silent_a, 'y': silent_b},
            {'measure': 'handled', 'x': handled_a, 'y': handled_b},
            {'measure': 'ends_right', 'x': ends_right_a, 'y': ends_right_b}
        ], recursive := true)
    FROM pairs
),

per_trace AS (
    SELECT
        measured_by,
        measure,
        CASE WHEN grouping(family) = 1 THEN 'all' ELSE family END AS part,
        paired_by,
        any_value(unlike) FILTER (known) AS some_unlike,
        count(*) FILTER (NOT counts) AS k_left,
        count(*) FILTER (counts) AS k_pairs,
        avg(x) FILTER (counts) AS x,
        avg(y) FILTER (counts) AS y,
        count(*) FILTER (counts AND x > y) AS k_lost,
        count(*) FILTER (counts AND x < y) AS k_gained,
        avg(y - x) FILTER (counts) AS difference
    FROM (
        SELECT *, x IS NOT NULL AND y IS NOT NULL AS known, known AND unlike IS NULL AS counts
        FROM measured
    )
    GROUP BY GROUPING SETS (
        (measured_by, measure, paired_by), (measured_by, measure, family, paired_by)
    )
),

rates AS (
    SELECT
        measured_by,
        measure,
        part,
        min(some_unlike) AS unlike,
        sum(k_pairs)::BIGINT AS pairs,
        sum(k_left)::BIGINT AS left_out,
        count(difference) AS traces,
        avg(x ORDER BY paired_by) AS rate_a,
        avg(y ORDER BY paired_by) AS rate_b,
        gained_and_lost(
            list(y - x ORDER BY paired_by) FILTER (k_pairs > 0),
            list(k_pairs ORDER BY paired_by) FILTER (k_pairs > 0)
        ) AS gain,
        sum(k_gained)::BIGINT AS gained,
        sum(k_lost)::BIGINT AS lost,
        max(k_pairs) AS most,
        avg(difference) AS mean,
        stddev_samp(difference) / sqrt(count(difference)) AS se
    FROM per_trace
    GROUP BY measured_by, measure, part
),

tested AS (
    SELECT
        *,
        CASE
            WHEN traces < 5 THEN NULL
            WHEN se = 0 THEN CASE WHEN mean = 0 THEN 1 ELSE pow(0.5, traces - 1) END
            ELSE 2 * t_sf(abs(mean / se), traces - 1)
        END AS p
    FROM rates
),

adjusted AS (
    SELECT measured_by, measure, unnest(parts) AS part, unnest(holm(ps)) AS p_holm
    FROM (
        SELECT
            measured_by,
            measure,
            list(part ORDER BY part) AS parts,
            list(p ORDER BY part) AS ps
        FROM tested
        WHERE part != 'all'
        GROUP BY measured_by, measure
    )
)

SELECT
    tested.measured_by,
    tested.measure,
    tested.part,
    pairs,
    left_out,
    traces,
    rate_a,
    rate_b,
    rate_b - rate_a AS delta,
    gain.lo AS lo,
    gain.hi AS hi,
    p,
    p_holm,
    CASE WHEN most = 1 THEN mcnemar_midp(lost, gained) END AS p_mcnemar,
    gained,
    lost,
    CASE
        WHEN pairs = 0 THEN coalesce(unlike, 'nothing_judged')
        ELSE gain.reason
    END AS reason
FROM tested
LEFT JOIN adjusted
    ON
        tested.measured_by IS NOT DISTINCT FROM adjusted.measured_by
        AND tested.measure = adjusted.measure
        AND tested.part IS NOT DISTINCT FROM adjusted.part
ORDER BY tested.measured_by, tested.measure, tested.part != 'all', tested.part;
