-- A rate over clusters with a 95 % interval: {hits, cases, clusters, n_eff, rate, lo, hi, reason}.
--
-- clustered(list(hits), list(cases)) takes one number each per cluster, as DOUBLE. The interval
-- is Wilson's on the effective number of cases, with the quantile of t for clusters - 1 degrees
-- of freedom; clustering never makes it narrower. Where all cases agree clustering cannot be
-- estimated, so each cluster counts as one case (exact bound, one-sided 95 %). Fewer than five
-- clusters with cases have no interval, no cases have no rate.
CREATE MACRO cluster_sums(hit_list, case_list) AS {
    'hits': list_sum(hit_list),
    'cases': list_sum(case_list),
    'clusters': len(list_filter(case_list, lambda each: each > 0)),
    'hits2': list_inner_product(hit_list, hit_list),
    'both': list_inner_product(hit_list, case_list),
    'cases2': list_inner_product(case_list, case_list)
};

-- Mean square of hits - rate * cases over clusters, against that of independent cases.
CREATE MACRO cluster_effect(s, rate) AS greatest(
    1.0,
    s.clusters / (s.clusters - 1.0) * (s.hits2 - 2 * rate * s.both + rate * rate * s.cases2)
    / (s.cases * rate * (1 - rate))
);

CREATE MACRO cluster_size(s) AS
CASE
    WHEN s.clusters < 2 OR s.hits = 0 OR s.hits = s.cases THEN s.clusters::DOUBLE
    ELSE s.cases / cluster_effect(s, s.hits / s.cases)
END;

CREATE MACRO cluster_bounds(s, r) AS {
    'hits': s.hits,
    'cases': s.cases,
    'clusters': s.clusters,
    'n_eff': r.n_eff,
    'rate': r.rate,
    'lo': CASE
        WHEN s.clusters < 5 THEN NULL
        WHEN s.hits = s.cases THEN 1 - none_in(s.clusters)
        ELSE wilson_lo(r.rate * r.n_eff, r.n_eff, r.t)
    END,
    'hi': CASE
        WHEN s.clusters < 5 THEN NULL
        WHEN s.hits = 0 THEN none_in(s.clusters)
        ELSE wilson_hi(r.rate * r.n_eff, r.n_eff, r.t)
    END,
    'reason': CASE WHEN s.clusters < 5 THEN 'few_traces' END
};

CREATE MACRO clustered(hit_list, case_list) AS
[
    cluster_bounds(fit.s, fit.r) FOR fit IN [
        {
            's': s,
            'r': {
                'n_eff': cluster_size(s),
                'rate': s.hits / nullif(s.cases, 0),
                't': t975(s.clusters - 1)
            }
        } FOR s IN [cluster_sums(hit_list, case_list)]
    ]
][1];
