-- Clopper-Pearson exact interval of k out of n at a confidence: exact_lo, exact_hi.
--
-- By sixty halvings of where the binomial tail, an incomplete beta function, is alpha / 2.
CREATE MACRO beta_ppf(a, b, p) AS list_reduce(
    list_prepend(0.5::DOUBLE, range(1, 61)::DOUBLE[]),
    lambda x, n: x + CASE WHEN beta_i(a, b, x) < p THEN 1 ELSE -1 END * pow(0.5, n + 1)
);

CREATE MACRO exact_lo(k, n, confidence) AS
CASE
    WHEN n IS NULL OR k IS NULL OR n = 0 THEN NULL
    WHEN k = 0 THEN 0.0
    ELSE beta_ppf(k, n - k + 1, (1 - confidence) / 2)
END;

CREATE MACRO exact_hi(k, n, confidence) AS
CASE
    WHEN n IS NULL OR k IS NULL OR n = 0 THEN NULL
    WHEN k = n THEN 1.0
    ELSE beta_ppf(k + 1, n - k, (1 + confidence) / 2)
END;
