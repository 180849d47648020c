-- McNemar's test of b against c discordant pairs: exact, and mid-p.
CREATE MACRO mcnemar_exact(b, c) AS
CASE
    WHEN b + c = 0 THEN 1.0
    ELSE least(1.0, 2 * binom_cdf(least(b, c)::BIGINT, (b + c)::BIGINT, 0.5))
END;

CREATE MACRO mcnemar_midp(b, c) AS
CASE
    WHEN b + c = 0 THEN 1.0
    ELSE mcnemar_exact(b, c) - exp(lchoose(b + c, least(b, c))) * pow(0.5, b + c)
END;
