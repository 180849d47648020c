-- Standard normal distribution: norm_cdf(z), upper tail norm_sf(z), quantile norm_ppf(p).
--
-- The tails by the incomplete gamma function; the quantile from Abramowitz and Stegun 26.2.23,
-- which is right to three places, by two steps of Halley's.
-- Each argument is bound once: DuckDB pastes what a macro is given into every place that names it,
-- and quantiles within quantiles took seconds to plan.
CREATE MACRO norm_sf(z) AS
[
    CASE WHEN x < 0 THEN 1 - gamma_q(0.5, x * x / 2.0) / 2 ELSE gamma_q(0.5, x * x / 2.0) / 2 END
    FOR x IN [(z)::DOUBLE]
][1];

CREATE MACRO norm_cdf(z) AS norm_sf(-(z));

CREATE MACRO norm_guess(s) AS
s - (2.515517 + 0.802853 * s + 0.010328 * s * s)
/ (1 + 1.432788 * s + 0.189269 * s * s + 0.001308 * s * s * s);

-- Halley's step from Newton's: the tail that is too much, over the density.
CREATE MACRO norm_closer(z, too_much) AS z + too_much / (1 + z * too_much / 2);

CREATE MACRO norm_tail_quantile(tail) AS list_reduce(
    [norm_guess(sqrt(-2 * ln(tail))), 1, 2],
    lambda z, n: [
        norm_closer(z, too_much)
        FOR too_much IN [(norm_sf(z) - tail) * exp(z * z / 2) * sqrt(2 * pi())]
    ][1]
);

CREATE MACRO norm_ppf(p) AS
[
    CASE
        WHEN q < 0 OR q > 1 THEN NULL
        WHEN q = 0 THEN '-inf'::DOUBLE
        WHEN q = 1 THEN 'inf'::DOUBLE
        WHEN q = 0.5 THEN 0.0
        ELSE sign(q - 0.5) * norm_tail_quantile(least(q, 1 - q))
    END
    FOR q IN [(p)::DOUBLE]
][1];
