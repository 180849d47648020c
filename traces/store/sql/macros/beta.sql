-- Regularised incomplete beta function beta_i(a, b, x), the basis of t, F and binomial tails.
--
-- The continued fraction of DLMF 8.17.22 from its far end, on the side of the mean where it
-- converges; the other side is one minus that. What a list is reduced from stands first in the list
-- here, in all macros: as an argument of its own it has DuckDB bind the lambda twice, and four times
-- one within another.
CREATE MACRO beta_density(a, b, x) AS
exp(a * ln(x) + b * ln(1 - x) + lgamma(a + b) - lgamma(a) - lgamma(b));

CREATE MACRO beta_below(a, b, x) AS
beta_density(a, b, x) / a / list_reduce(
    list_prepend(1::DOUBLE, range((48 + 4 * sqrt(a + b))::BIGINT, -1, -1)::DOUBLE[]),
    lambda rest, m: 1 - (a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
    / (1 + (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2)) / rest)
);

CREATE MACRO beta_i(a, b, x) AS
CASE
    WHEN a IS NULL OR b IS NULL OR x IS NULL OR a <= 0 OR b <= 0 THEN NULL
    WHEN x <= 0 THEN 0.0
    WHEN x >= 1 THEN 1.0
    ELSE [
        CASE WHEN side.is_below THEN side.share ELSE 1 - side.share END FOR side IN [
            {'is_below': f.is_below, 'share': beta_below(f.a, f.b, f.x)} FOR f IN [
                CASE
                    WHEN x <= (a + 1) / (a + b + 2)
                        THEN {'is_below': true, 'a': a::DOUBLE, 'b': b::DOUBLE, 'x': x::DOUBLE}
                    ELSE {'is_below': false, 'a': b::DOUBLE, 'b': a::DOUBLE, 'x': 1 - x::DOUBLE}
                END
            ]
        ]
    ][1]
END;
