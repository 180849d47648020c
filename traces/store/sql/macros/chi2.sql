-- Chi-squared distribution with df degrees of freedom: chi2_cdf(x, df), chi2_sf(x, df).
CREATE MACRO chi2_cdf(x, df) AS gamma_p(df / 2.0, x / 2.0);

CREATE MACRO chi2_sf(x, df) AS gamma_q(df / 2.0, x / 2.0);
