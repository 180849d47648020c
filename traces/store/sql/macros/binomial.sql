-- Binomial coefficients and the binomial distribution, from logarithms of the gamma function.
CREATE MACRO lchoose(n, k) AS lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);

CREATE MACRO choose_(n, k) AS CASE WHEN k < 0 OR k > n THEN 0.0 ELSE exp(lchoose(n, k)) END;

CREATE MACRO binom_cdf(k, n, p) AS
CASE
    WHEN k < 0 THEN 0.0
    WHEN k >= n OR p <= 0 THEN 1.0
    WHEN p >= 1 THEN 0.0
    ELSE list_sum([
        exp(lchoose(n, i) + i * ln(p) + (n - i) * ln(1 - p)) FOR i IN range(0, (k + 1)::BIGINT)
    ])
END;

-- The highest rate that still gives no event in n cases with a probability of 5 %.
CREATE MACRO none_in(n) AS 1 - pow(0.05, 1.0 / nullif(n, 0));

-- The same at another confidence.
CREATE MACRO none_in_at(n, confidence) AS 1 - pow(1 - confidence, 1.0 / nullif(n, 0));
