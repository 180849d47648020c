-- Power of a two-sided comparison of two rates, and the cases it needs; normal approximation.
--
-- Pooled variance under the null, own variance under the alternative; the far tail is counted, so
-- that equal rates have a power of alpha. pairs: of paired cases, discordant is the share that
-- differs at all, and delta the difference (Connor 1987). one_sample: against a known rate.
-- design_effect: what m cases per trace with that intraclass correlation multiply all of it by.
CREATE MACRO rates_power(p1, p2, n, alpha) AS
norm_cdf(
    (abs(p1 - p2) * sqrt(n) - norm_ppf(1 - alpha / 2.0) * sqrt((p1 + p2) * (2 - p1 - p2) / 2.0))
    / nullif(sqrt(p1 * (1 - p1) + p2 * (1 - p2)), 0)
)
+ norm_cdf(
    (-abs(p1 - p2) * sqrt(n) - norm_ppf(1 - alpha / 2.0) * sqrt((p1 + p2) * (2 - p1 - p2) / 2.0))
    / nullif(sqrt(p1 * (1 - p1) + p2 * (1 - p2)), 0)
);

CREATE MACRO rates_needed(p1, p2, alpha, power) AS
ceil(
    pow(
        norm_ppf(1 - alpha / 2.0) * sqrt((p1 + p2) * (2 - p1 - p2) / 2.0)
        + norm_ppf(power) * sqrt(p1 * (1 - p1) + p2 * (1 - p2)),
        2
    ) / nullif((p1 - p2) * (p1 - p2), 0)
);

CREATE MACRO pairs_needed(delta, discordant, alpha, power) AS
ceil(
    pow(
        norm_ppf(1 - alpha / 2.0) * sqrt(discordant)
        + norm_ppf(power) * sqrt(discordant - delta * delta),
        2
    ) / nullif(delta * delta, 0)
);

CREATE MACRO one_sample_needed(p, known, alpha, power) AS
ceil(
    pow(
        norm_ppf(1 - alpha / 2.0) * sqrt(known * (1 - known))
        + norm_ppf(power) * sqrt(p * (1 - p)),
        2
    ) / nullif((p - known) * (p - known), 0)
);

CREATE MACRO design_effect(m, icc) AS 1 + (m - 1) * icc::DOUBLE;
