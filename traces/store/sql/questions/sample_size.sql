-- How many injections does a difference need? Per arm, in pairs, and against a known rate.
-- default: p1 = 0.8, p2 = 0.9, alpha = 0.05, power = 0.8, discordant = null, m = 1, icc = 0.0
-- range: p1 = 0..1, p2 = 0..1, alpha = 0..1, power = 0..1, discordant = 0..1, m = 1.., icc = 0..1
--
-- Two-sided, normal approximation. m injections per trace whose outcomes correlate by icc multiply
-- all of it by the design effect. discordant: the share of pairs that differ at all, at least the
-- difference; without it pairs are taken for independent. More traces beat more repeats per trace.
WITH asked AS (
    SELECT
        abs($p1::DOUBLE - $p2) AS delta,
        design_effect($m, $icc) AS deff,
        coalesce($discordant::DOUBLE, $p1 * (1 - $p2::DOUBLE) + $p2 * (1 - $p1::DOUBLE)) AS apart,
        rates_needed($p1::DOUBLE, $p2::DOUBLE, $alpha::DOUBLE, $power::DOUBLE) AS k_arm,
        one_sample_needed($p2::DOUBLE, $p1::DOUBLE, $alpha::DOUBLE, $power::DOUBLE) AS k_one
)

SELECT
    $p1 AS p1,
    $p2 AS p2,
    $power AS power,
    deff AS design_effect,
    ceil(k_arm * deff)::BIGINT AS per_arm,
    ceil(k_arm * deff / $m)::BIGINT AS traces_per_arm,
    CASE WHEN apart >= delta
        THEN ceil(pairs_needed(delta, apart, $alpha::DOUBLE, $power::DOUBLE) * deff)::BIGINT
    END AS pairs,
    ceil(k_one * deff)::BIGINT AS against_known,
    CASE
        WHEN delta = 0 THEN 'no_difference'
        WHEN apart < delta THEN 'fewer_discordant_pairs_than_the_difference'
    END AS reason
FROM asked;
