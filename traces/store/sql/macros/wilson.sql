-- Wilson score interval of k out of n, k and n real; NULL if n is 0.
CREATE MACRO wilson_mid(k, n, z) AS (k + z * z / 2.0) / (n + z * z);

CREATE MACRO wilson_half(k, n, z) AS
z * sqrt(greatest(k * (n - k), 0) / n::DOUBLE + z * z / 4.0) / (n + z * z);

CREATE MACRO wilson_lo(k, n, z) AS
CASE
    WHEN n IS NULL OR k IS NULL OR n = 0 THEN NULL
    WHEN k = 0 THEN 0.0
    ELSE greatest(0.0, wilson_mid(k, n, z) - wilson_half(k, n, z))
END;

CREATE MACRO wilson_hi(k, n, z) AS
CASE
    WHEN n IS NULL OR k IS NULL OR n = 0 THEN NULL
    WHEN k = n THEN 1.0
    ELSE least(1.0, wilson_mid(k, n, z) + wilson_half(k, n, z))
END;
