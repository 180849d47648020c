-- Two-sided p-values for a change between two independent windows: of a clustered rate, of a mean.
--
-- rate_change_p(a, b) takes two results of `clustered`: the score test of two proportions on effective
-- cases, its statistic against t with the clusters of both less two. NULL without five clusters in
-- each. mean_change_p takes means, standard errors and numbers of clusters: Welch's t test (1947).
CREATE MACRO rate_change_p(a, b) AS
[
    CASE
        WHEN a.clusters < 5 OR b.clusters < 5 THEN NULL
        WHEN spread > 0
            THEN 2 * t_sf(abs(a.rate - b.rate) / sqrt(spread), a.clusters + b.clusters - 2)
        WHEN spread = 0 THEN 1.0
    END
    FOR spread IN [
        ((a.rate * a.n_eff + b.rate * b.n_eff) / (a.n_eff + b.n_eff))
        * (1 - (a.rate * a.n_eff + b.rate * b.n_eff) / (a.n_eff + b.n_eff))
        * (1 / a.n_eff + 1 / b.n_eff)
    ]
][1];

CREATE MACRO mean_change_p(mean_a, error_a, n_a, mean_b, error_b, n_b) AS
[
    CASE
        WHEN n_a < 5 OR n_b < 5 THEN NULL
        WHEN spread > 0
            THEN 2 * t_sf(
                abs(mean_a - mean_b) / sqrt(spread),
                spread * spread
                / (pow(error_a, 4) / (n_a - 1) + pow(error_b, 4) / (n_b - 1))
            )
        WHEN mean_a = mean_b THEN 1.0
    END
    FOR spread IN [error_a * error_a + error_b * error_b]
][1];
