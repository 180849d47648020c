-- Mean of one number per run with its 95 % interval by Student's t: {mean, lo, hi, runs, reason}.
--
-- Runs are taken for independent. One run, or runs that are all alike, have no interval; none have
-- no mean.
CREATE MACRO over_runs(each) AS
[
    {
        'mean': s.mean,
        'lo': CASE WHEN s.error > 0 THEN s.mean - t975(s.runs - 1) * s.error END,
        'hi': CASE WHEN s.error > 0 THEN s.mean + t975(s.runs - 1) * s.error END,
        'runs': s.runs,
        'reason': CASE
            WHEN s.runs = 0 THEN 'not_known'
            WHEN s.runs = 1 THEN 'one_run'
            WHEN s.error = 0 THEN 'all_alike'
        END
    } FOR s IN [
        {
            'mean': list_avg(each),
            'runs': coalesce(list_count(each), 0),
            'error': list_stddev_samp(each) / sqrt(list_count(each))
        }
    ]
][1];

-- The interval of a number that cannot leave 0 to `most` (NULL: no end above).
CREATE MACRO kept_within(figure, most) AS {
    'mean': figure.mean,
    'lo': CASE WHEN figure.lo < 0 THEN 0 ELSE figure.lo END,
    'hi': CASE WHEN figure.hi > most THEN most ELSE figure.hi END,
    'runs': figure.runs,
    'reason': figure.reason
};
