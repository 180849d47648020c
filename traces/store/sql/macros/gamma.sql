-- Regularised incomplete gamma function: gamma_p(a, x) lower, gamma_q(a, x) upper.
--
-- Below x = a + 1 the series of positive terms, above it the continued fraction, both summed from
-- their far end, so that neither tail is a difference of large numbers. DLMF 8.11.4 and 8.9.2.
CREATE MACRO gamma_density(a, x) AS exp(a * ln(x) - x - lgamma(a));

CREATE MACRO gamma_below(a, x) AS
gamma_density(a, x) / a * list_reduce(
    list_prepend(1::DOUBLE, range((64 + 12 * sqrt(a + 1))::BIGINT, 0, -1)::DOUBLE[]),
    lambda rest, n: 1 + x / (a + n) * rest
);

CREATE MACRO gamma_above(a, x) AS
gamma_density(a, x) / list_reduce(
    list_prepend(
        (x + 2 * (64 + 12 * sqrt(a + 1)) + 1 - a)::DOUBLE,
        range((64 + 12 * sqrt(a + 1))::BIGINT, 0, -1)::DOUBLE[]
    ),
    lambda rest, n: x + 2 * n - 1 - a - n * (n - a) / rest
);

CREATE MACRO gamma_p(a, x) AS
CASE
    WHEN a IS NULL OR x IS NULL OR a <= 0 OR x < 0 THEN NULL
    WHEN x = 0 THEN 0.0
    WHEN x = 'inf'::DOUBLE THEN 1.0
    WHEN x < a + 1 THEN gamma_below(a::DOUBLE, x::DOUBLE)
    ELSE 1 - gamma_above(a::DOUBLE, x::DOUBLE)
END;

CREATE MACRO gamma_q(a, x) AS
CASE
    WHEN a IS NULL OR x IS NULL OR a <= 0 OR x < 0 THEN NULL
    WHEN x = 0 THEN 1.0
    WHEN x = 'inf'::DOUBLE THEN 0.0
    WHEN x < a + 1 THEN 1 - gamma_below(a::DOUBLE, x::DOUBLE)
    ELSE gamma_above(a::DOUBLE, x::DOUBLE)
END;
