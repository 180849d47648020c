-- Student's t with df degrees of freedom: t_cdf(t, df), upper tail t_sf(t, df), t_ppf(p, df).
--
-- The quantile is found on logarithmic scales, where a tail is all but straight: Newton's steps
-- from the normal quantile. t975(df) is t_ppf(0.975, df), which intervals ask for all the time.
CREATE MACRO t_tail(t, df) AS
CASE
    WHEN t IS NULL THEN NULL
    WHEN t = 0 THEN 0.5
    ELSE [
        CASE WHEN side.is_inner THEN 0.5 - side.half ELSE side.half END FOR side IN [
            {'is_inner': f.is_inner, 'half': beta_below(f.a, f.b, f.x) / 2} FOR f IN [
                CASE
                    WHEN t * t / (df + t * t) < 3 / (df + 5)
                        THEN {'is_inner': true, 'a': 0.5::DOUBLE, 'b': df / 2.0, 'x': t * t / (df + t * t)}
                    ELSE {'is_inner': false, 'a': df / 2.0, 'b': 0.5::DOUBLE, 'x': df / (df + t * t)}
                END
            ]
        ]
    ][1]
END;

CREATE MACRO t_sf(t, df) AS
CASE
    WHEN df IS NULL OR df <= 0 THEN NULL
    WHEN df = 'inf'::DOUBLE THEN norm_sf(t)
    WHEN t < 0 THEN 1 - t_tail(-(t)::DOUBLE, df::DOUBLE)
    ELSE t_tail(t::DOUBLE, df::DOUBLE)
END;

CREATE MACRO t_cdf(t, df) AS t_sf(-(t), df);

CREATE MACRO t_density(t, df) AS
exp(
    lgamma((df + 1) / 2.0) - lgamma(df / 2.0)
    - ln(df * pi()) / 2 - (df + 1) / 2.0 * ln(1 + t * t / df)
);

-- d ln(tail) / d ln(t) = -t density / tail.
CREATE MACRO t_tail_quantile(tail, df) AS list_reduce(
    list_prepend(norm_guess(sqrt(-2 * ln(tail))), range(12)::DOUBLE[]),
    lambda t, n: [
        t * exp(ln(had / tail) * had / (t * t_density(t, df))) FOR had IN [t_tail(t, df)]
    ][1]
);

CREATE MACRO t_ppf(p, df) AS
CASE
    WHEN df IS NULL OR df <= 0 OR p < 0 OR p > 1 THEN NULL
    WHEN p = 0.5 THEN 0.0
    WHEN p IN (0, 1) OR df = 'inf'::DOUBLE THEN norm_ppf(p)
    ELSE sign(p - 0.5) * t_tail_quantile(least(p, 1 - p)::DOUBLE, df::DOUBLE)
END;
