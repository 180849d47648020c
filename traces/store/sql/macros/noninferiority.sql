-- Bounds of a mean difference over root recordings, each one-sided at level alpha: {difference, lower, upper, reason}.
--
-- Estimand: the mean, over the population that the roots are drawn from, of candidate minus
-- baseline; each root has the same weight. paired_bounds(list of differences, -1 to 1) where both
-- worked on the same roots, unpaired_bounds(candidate's rates, baseline's rates, 0 to 1) elsewhere.
--
-- Formula: Student's t over roots (K - 1 degrees of freedom, of two arms of the smaller K) about the
-- mean difference, with a standard error to which one success and one failure of each arm are
-- added, as Agresti and Caffo (2000, The American Statistician 54, 280-288) do with cases, here as
-- whole roots: of pairs one that is lost and one that is gained. So roots that are all alike have
-- an interval too. t knows nothing of what no root showed: that one of many is lost altogether. So
-- the lower bound is no higher than the difference less what Clopper and Pearson (1934) leave open
-- of such roots: the upper bound of the share of roots that lost half or more, each counted with
-- its loss, above what was seen. The same mirrored gives the upper bound. With no such root in K it
-- is 1 - alpha^(1 / K): 59 roots for .05, 29 for .1, 14 for .2.
--
-- Simulated in tests/statistical: a difference that is worse by the margin is passed in at most 5 %,
-- from 5 roots on, at any size of roots and correlation, also where whole roots are lost.
-- reason: few_roots (fewer than five, or in an arm), which have no bounds. Not for roots that
-- depend on one another (recordings of one task by one agent are alike: give them one root).
--
-- Each loss is {lost, roots, worth}: how many of how many roots are lost, and what a root is worth.
CREATE MACRO lost_more(losses, alpha) AS [
    greatest(0, exact_hi(each.lost, each.roots, 1 - 2 * alpha) - each.lost / each.roots)
    * each.worth
    FOR each IN losses
];

CREATE MACRO bounds_of(fit, lost) AS {
    'difference': fit.difference,
    'lower': CASE
        WHEN fit.few THEN NULL
        WHEN fit.alpha <= 0 THEN -1.0
        ELSE greatest(-1, fit.difference - greatest(fit.t * fit.error, lost[1]))
    END,
    'upper': CASE
        WHEN fit.few THEN NULL
        WHEN fit.alpha <= 0 THEN 1.0
        ELSE least(1, fit.difference + greatest(fit.t * fit.error, lost[2]))
    END,
    'reason': CASE WHEN fit.few THEN 'few_roots' END
};

CREATE MACRO paired_fit(s) AS {
    'alpha': s.alpha,
    'few': s.roots < 5,
    'difference': s.total / nullif(s.roots, 0),
    't': t_ppf(1 - s.alpha, s.roots - 1),
    'error': sqrt(
        (s.squares + 2 - s.total * s.total / (s.roots + 2)) / (s.roots + 1) / (s.roots + 2)
    ),
    'losses': [
        {'lost': s.losses, 'roots': s.roots, 'worth': 1 + greatest(0, s.total / s.roots)},
        {'lost': s.gains, 'roots': s.roots, 'worth': 1 + greatest(0, -(s.total / s.roots))}
    ]
};

CREATE MACRO paired_bounds(differences, alpha) AS [
    bounds_of(fit, lost_more(fit.losses, fit.alpha)) FOR fit IN [
        paired_fit(s) FOR s IN [
            {
                'alpha': alpha::DOUBLE,
                'roots': coalesce(len(differences), 0),
                'total': coalesce(list_sum(differences::DOUBLE[]), 0),
                'squares': coalesce(
                    list_inner_product(differences::DOUBLE[], differences::DOUBLE[]), 0
                ),
                'losses': coalesce(
                    list_sum([-(d) FOR d IN differences::DOUBLE[] IF d <= -0.5]), 0.0
                ),
                'gains': coalesce(list_sum([d FOR d IN differences::DOUBLE[] IF d >= 0.5]), 0.0)
            }
        ]
    ]
][1];

-- What an arm may have lost: roots with at most half of its mean rate, of what the others have.
-- 1e-9: a root with just half is lost in whatever order the mean was summed.
CREATE MACRO arm_loss(rates) AS [
    {
        'lost': coalesce(list_sum([1 - x / part.rest FOR x IN part.low IF part.rest > 0]), 0.0),
        'roots': len(rates),
        'worth': coalesce(part.rest, 0.0)
    } FOR part IN [
        {
            'rest': list_avg([x FOR x IN rates IF x > half]),
            'low': [x FOR x IN rates IF x <= half]
        } FOR half IN [list_avg(rates) / 2 + 1e-9]
    ]
][1];

-- The mean rate of one arm, and its squared error with a root all right and a root all wrong.
CREATE MACRO arm_fit(rates) AS [
    {
        'roots': s.roots,
        'rate': s.total / nullif(s.roots, 0),
        'error2': (s.squares + 1 - (s.total + 1) * (s.total + 1) / (s.roots + 2))
        / (s.roots + 1) / (s.roots + 2),
        'loss': arm_loss(s.rates),
        'gain': arm_loss([1 - x FOR x IN s.rates])
    } FOR s IN [
        {
            'rates': rates::DOUBLE[],
            'roots': coalesce(len(rates), 0),
            'total': coalesce(list_sum(rates::DOUBLE[]), 0),
            'squares': coalesce(list_inner_product(rates::DOUBLE[], rates::DOUBLE[]), 0)
        }
    ]
][1];

CREATE MACRO unpaired_bounds(candidate, baseline, alpha) AS [
    bounds_of(
        fit, [greatest(fit.lost[1], fit.lost[4]), greatest(fit.lost[2], fit.lost[3])]
    ) FOR fit IN [
        {
            'alpha': alpha::DOUBLE,
            'few': least(arm.a.roots, arm.b.roots) < 5,
            'difference': arm.a.rate - arm.b.rate,
            't': t_ppf(1 - alpha::DOUBLE, least(arm.a.roots, arm.b.roots) - 1),
            'error': sqrt(arm.a.error2 + arm.b.error2),
            'lost': lost_more([arm.a.loss, arm.a.gain, arm.b.loss, arm.b.gain], alpha::DOUBLE)
        } FOR arm IN [{'a': arm_fit(candidate), 'b': arm_fit(baseline)}]
    ]
][1];
