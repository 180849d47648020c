-- Which difference can n injections per arm show? Power of a comparison of two rates.
-- default: p1 = 0.8, p2 = 0.9, n = 100, alpha = 0.05, m = 1, icc = 0.0
-- range: p1 = 0..1, p2 = 0..1, n = 1.., alpha = 0..1, m = 1.., icc = 0..1
SELECT
    $p1 AS p1,
    $p2 AS p2,
    $n AS n,
    design_effect($m, $icc) AS design_effect,
    rates_power($p1::DOUBLE, $p2::DOUBLE, $n / design_effect($m, $icc), $alpha::DOUBLE) AS power;
