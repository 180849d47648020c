-- The rate behind a judge that errs, with an interval that holds both errors: {rate, lo, hi}.
--
-- rogan_gladen at the judge's sensitivity and specificity, its interval that of Lang and Reiczigel
-- (2014): n_eff cases at a quantile t, and how many labelled runs the judge's own figures are of.
-- A bound is never nearer than that of the interval [lo, hi] of the apparent rate, set right alike, so
-- that what this interval allows for (exact tails, parts) stays allowed for. judge: {positives,
-- read_positive, negatives, read_negative} of labelled runs. NULL if it is no better than a coin.
-- Not for labels of chosen runs (the worst, say): they have to be drawn at random.
CREATE MACRO smoothed_share(hits, cases) AS (hits + 1) / (cases + 2)::DOUBLE;

CREATE MACRO share_variance(share, cases) AS share * (1 - share) / cases;

CREATE MACRO behind_judge(apparent, judge) AS
[
    {
        'rate': rogan_gladen(apparent.rate, f.raw_sensitivity, f.raw_specificity),
        'lo': greatest(
            0, least(f.middle - f.half, rogan_gladen(apparent.lo, f.sensitivity, f.specificity))
        ),
        'hi': least(
            1, greatest(f.middle + f.half, rogan_gladen(apparent.hi, f.sensitivity, f.specificity))
        )
    }
    FOR f IN [
        {
            'raw_sensitivity': judge.read_positive / nullif(judge.positives, 0)::DOUBLE,
            'raw_specificity': judge.read_negative / nullif(judge.negatives, 0)::DOUBLE,
            'sensitivity': s.sensitivity,
            'specificity': s.specificity,
            'middle': s.rate + 2 * pow(apparent.t, 2) * (s.rate * s.var_se - (1 - s.rate) * s.var_sp),
            'half': apparent.t / s.youden * sqrt(
                s.var_p + pow(s.rate, 2) * s.var_se + pow(1 - s.rate, 2) * s.var_sp
            )
        }
        FOR s IN [
            {
                'rate': (r.p + r.specificity - 1) / (r.sensitivity + r.specificity - 1),
                'youden': r.sensitivity + r.specificity - 1,
                'sensitivity': r.sensitivity,
                'specificity': r.specificity,
                'var_p': share_variance(r.p, apparent.n_eff + pow(apparent.t, 2)),
                'var_se': share_variance(r.sensitivity, judge.positives + 2),
                'var_sp': share_variance(r.specificity, judge.negatives + 2)
            }
            FOR r IN [
                {
                    'p': wilson_mid(apparent.rate * apparent.n_eff, apparent.n_eff, apparent.t),
                    'sensitivity': smoothed_share(judge.read_positive, judge.positives),
                    'specificity': smoothed_share(judge.read_negative, judge.negatives)
                }
            ]
            IF r.sensitivity + r.specificity > 1
        ]
    ]
][1];
