-- Rate over clusters with an interval: {hits, cases, clusters, effective, n_eff, df, t, rate, lo, hi, reason}.
--
-- Estimand: the share of hits among all cases of the population that the clusters (root recordings,
-- or tasks) are drawn from; each case has the same weight, and cases of a cluster may be alike.
-- clustered(list(hits), list(cases)) takes one number each per cluster, as DOUBLE, and gives a 95 %
-- interval; clustered_at has the confidence as its third argument. weighted and weighted_at, for cases
-- of unequal weight, take sums of weights, and third the sum of their squares per cluster.
--
-- Formula: rho, the intraclass correlation, by moments: the squared residuals of clusters against
-- their expectation, each with its leverage (the adjustment of CR2; Bell and McCaffrey 2002).
-- n_eff is cases^2 over the sum of the clusters' variances, n + n (n - 1) rho. Moments know nothing
-- of clusters that were not drawn, so ln n_eff is drawn towards that of the effective clusters
-- (Kish 1965: cases^2 / sum n^2), below which no correlation leads, with the weight of three
-- clusters; the data weigh as many as have a hit, or a miss, whichever are fewer, and if cases weigh
-- unequally no more than these hits or misses do (Kish, over their weights). The interval is
-- Wilson's (1927) on n_eff with the quantile of t at twice Satterthwaite's degrees of freedom; for
-- continuity it takes half a case from one effective hit or miss, 1 / (2 x) of a case from x.
-- Where all cases agree it is the exact one-sided bound on the effective clusters.
--
-- Coverage, simulated in tests/statistical: at least .92 from 5 clusters on, of equal sizes from 1
-- to 60, and of 1, 2, 5 and 40, at correlations of 0 to .5 (beta-binomial) and rates of .02 to .95.
-- reason: conservative where the interval may cover more than 98.5 %: n_eff is less than 1 / 1.25
-- of what moments give, or fewer than three effective hits or misses were seen. There is no interval
-- for few_traces (fewer than five clusters), few_effective_traces (fewer than four effective ones,
-- or one cluster has most of the variance), no_cases and not_a_number.
-- Not for clusters whose size depends on their rate, nor for correlation by a rare common shock.
CREATE MACRO effective_clusters(case_list) AS
coalesce(
    pow(list_sum(case_list), 2) / nullif(list_inner_product(case_list, case_list), 0), 0
);

-- Each list is made once: DuckDB pastes what a macro is given, and so does nullif.
CREATE MACRO cluster_lists(given) AS {
    'hits': given.hits,
    'cases': given.cases,
    'squares': given.squares,
    'cases2': list_transform(given.cases, lambda each: each * each),
    'with_hits': list_filter(
        given.cases, lambda size, place: given.hits[place] > 1e-9 * size
    ),
    'with_misses': list_filter(
        given.cases, lambda size, place: given.hits[place] < (1 - 1e-9) * size
    )
};

CREATE MACRO cluster_sums(lists) AS {
    'hits': list_sum(lists.hits),
    'cases': list_sum(lists.cases),
    'clusters': len(list_filter(lists.cases, lambda each: each > 0)),
    'squares': list_sum(lists.squares),
    'hits2': list_inner_product(lists.hits, lists.hits),
    'both': list_inner_product(lists.hits, lists.cases),
    'cases2': list_inner_product(lists.cases, lists.cases),
    'cases3': list_inner_product(lists.cases2, lists.cases),
    'cases4': list_inner_product(lists.cases2, lists.cases2),
    'squares2': list_inner_product(lists.squares, lists.squares),
    'squares_cases': list_inner_product(lists.squares, lists.cases),
    'squares_cases2': list_inner_product(lists.squares, lists.cases2),
    'with_hits': effective_clusters(lists.with_hits),
    'with_misses': effective_clusters(lists.with_misses)
};

-- Squared residuals over the variance of one case.
CREATE MACRO cluster_spread(s, rate) AS
(s.hits2 - 2 * rate * s.both + rate * rate * s.cases2) / nullif(rate * (1 - rate), 0);

-- The intraclass correlation that gives the clusters' squared residuals their expectation.
CREATE MACRO cluster_rho(s, spread) AS
greatest(0, least(1, coalesce(
    (
        spread * (1 - s.squares / pow(s.cases, 2))
        - s.squares + 2 * s.squares_cases / s.cases - s.cases2 * s.squares / pow(s.cases, 2)
    ) / nullif(
        s.cases2 - s.squares - 2 * (s.cases3 - s.squares_cases) / s.cases
        + (s.cases2 + spread) * (s.cases2 - s.squares) / pow(s.cases, 2),
        0
    ),
    1
)));

-- Effective cases at a correlation, and the correlation at which they are so many.
CREATE MACRO cluster_size(s, rho) AS
pow(s.cases, 2) / nullif(s.squares + rho * (s.cases2 - s.squares), 0);

CREATE MACRO cluster_rho_at(s, n_eff) AS
coalesce((pow(s.cases, 2) / n_eff - s.squares) / nullif(s.cases2 - s.squares, 0), 0);

CREATE MACRO cluster_freedom(s, n_eff, rho) AS
2 * (
    pow(pow(s.cases, 2) / n_eff, 2) / (
        pow(1 - rho, 2) * s.squares2 + 2 * rho * (1 - rho) * s.squares_cases2
        + rho * rho * s.cases4
    ) - 1
);

CREATE MACRO cluster_rate(s, rate, rho) AS {
    'rate': rate,
    'effective': pow(s.cases, 2) / nullif(s.cases2, 0),
    'informing': CASE
        WHEN abs(s.squares - s.cases) <= 1e-9 * s.squares THEN least(s.with_hits, s.with_misses)
        ELSE least(
            s.with_hits,
            s.with_misses,
            coalesce(pow(s.hits, 2) / nullif(s.hits2, 0), 0),
            coalesce(pow(s.cases - s.hits, 2) / nullif(s.cases2 - 2 * s.both + s.hits2, 0), 0)
        )
    END,
    'moments': cluster_size(s, rho)
};

CREATE MACRO cluster_drawn(s, r) AS {
    'rate': r.rate,
    'effective': r.effective,
    'agree': r.informing = 0,
    'moments': r.moments,
    'n_eff': CASE
        WHEN r.informing = 0 THEN r.effective
        ELSE exp((r.informing * ln(r.moments) + 3 * ln(r.effective)) / (r.informing + 3))
    END
};

CREATE MACRO cluster_reason(s, r, df) AS
CASE
    WHEN s.cases IS NULL OR s.cases = 0 THEN 'no_cases'
    WHEN NOT isfinite(s.hits + s.cases + s.squares) THEN 'not_a_number'
    WHEN s.clusters < 5 THEN 'few_traces'
    WHEN r.effective < 4 OR df < 2 THEN 'few_effective_traces'
    WHEN r.agree OR 1.25 * r.n_eff < r.moments OR least(r.rate, 1 - r.rate) * r.n_eff < 3
        THEN 'conservative'
END;

-- The effective hits (or misses) that a lower (or upper) bound is made of.
CREATE MACRO cluster_continuous(hits) AS greatest(0, hits - 0.5 / greatest(1, hits));

CREATE MACRO cluster_bounds(s, e, t, doubt) AS {
    'hits': s.hits,
    'cases': s.cases,
    'clusters': s.clusters,
    'effective': e.effective,
    'n_eff': e.n_eff,
    'df': e.df,
    't': t,
    'rate': CASE WHEN e.reason IS DISTINCT FROM 'not_a_number' THEN e.rate END,
    'lo': CASE
        WHEN coalesce(e.reason != 'conservative', false) THEN NULL
        WHEN e.agree THEN CASE WHEN e.rate > 0.5 THEN pow(doubt, 1 / e.effective) ELSE 0.0 END
        ELSE wilson_lo(e.hits, e.n_eff, t)
    END,
    'hi': CASE
        WHEN coalesce(e.reason != 'conservative', false) THEN NULL
        WHEN e.agree THEN CASE WHEN e.rate > 0.5 THEN 1.0 ELSE 1 - pow(doubt, 1 / e.effective) END
        ELSE 1 - wilson_lo(e.misses, e.n_eff, t)
    END,
    'reason': e.reason
};

-- A list in, a list out, step by step: each step asks several times for what the one before found,
-- and DuckDB's time to bind a comprehension doubles with each one that stands in its body (v2.0.0).
CREATE MACRO cluster_estimates(given_list) AS
[
    {
        's': rated.s,
        'e': {
            'rate': rated.r.rate,
            'effective': rated.r.effective,
            'agree': rated.r.agree,
            'n_eff': rated.r.n_eff,
            'df': rated.df,
            'hits': cluster_continuous(rated.r.rate * rated.r.n_eff),
            'misses': cluster_continuous((1 - rated.r.rate) * rated.r.n_eff),
            'reason': cluster_reason(rated.s, rated.r, rated.df)
        }
    }
    FOR rated IN [
        {'s': tied.s, 'r': tied.r, 'df': cluster_freedom(tied.s, tied.r.n_eff, tied.rho)}
        FOR tied IN [
            {'s': drawn.s, 'r': drawn.r, 'rho': cluster_rho_at(drawn.s, drawn.r.n_eff)}
            FOR drawn IN [
                {'s': found.s, 'r': cluster_drawn(found.s, found.r)} FOR found IN [
                    {'s': each.s, 'r': cluster_rate(each.s, each.rate, each.rho)} FOR each IN [
                        {'s': each.s, 'rate': each.rate, 'rho': cluster_rho(each.s, each.spread)}
                        FOR each IN [
                            {
                                's': each.s,
                                'rate': each.rate,
                                'spread': cluster_spread(each.s, each.rate)
                            }
                            FOR each IN [
                                {'s': s, 'rate': s.hits / nullif(s.cases, 0)} FOR s IN [
                                    cluster_sums(lists)
                                    FOR lists IN [cluster_lists(given) FOR given IN given_list]
                                ]
                            ]
                        ]
                    ]
                ]
            ]
        ]
    ]
];

-- Of each {hits, cases, squares} of a list; the quantile of 95 % is not searched for.
CREATE MACRO each_weighted(given_list) AS
[
    cluster_bounds(fit.s, fit.e, fit.t, 0.05::DOUBLE)
    FOR fit IN [
        {'s': each.s, 'e': each.e, 't': t975(each.e.df)} FOR each IN cluster_estimates(given_list)
    ]
];

CREATE MACRO weighted(hit_list, case_list, square_list) AS
each_weighted([{'hits': hit_list, 'cases': case_list, 'squares': square_list}])[1];

-- Of each {hits, cases} of a list.
CREATE MACRO each_clustered(given_list) AS
each_weighted(
    [{'hits': each.hits, 'cases': each.cases, 'squares': each.cases} FOR each IN given_list]
);

CREATE MACRO clustered(hit_list, case_list) AS weighted(hit_list, case_list, case_list);

CREATE MACRO each_weighted_at(given_list, confidence) AS
[
    cluster_bounds(fit.s, fit.e, fit.t, 1 - confidence::DOUBLE)
    FOR fit IN [
        {
            's': each.s,
            'e': each.e,
            't': CASE
                WHEN confidence = 0.95 THEN t975(each.e.df)
                ELSE t_ppf((1 + confidence) / 2.0, each.e.df)
            END
        }
        FOR each IN cluster_estimates(given_list)
    ]
];

CREATE MACRO weighted_at(hit_list, case_list, square_list, confidence) AS
each_weighted_at(
    [{'hits': hit_list, 'cases': case_list, 'squares': square_list}], confidence
)[1];

CREATE MACRO clustered_at(hit_list, case_list, confidence) AS
weighted_at(hit_list, case_list, case_list, confidence);

-- Shares of clusters of which each counts the same, over so many cases each, as a clustered rate.
CREATE MACRO equal_traces(share_list, case_list) AS {
    'hits': share_list::DOUBLE[],
    'cases': list_transform(share_list, lambda share: 1::DOUBLE),
    'squares': list_transform(case_list, lambda cases: 1 / cases::DOUBLE)
};

CREATE MACRO over_equal_traces(share_list, case_list) AS
each_weighted([equal_traces(share_list, case_list)])[1];
