-- Mean of one number per run with its 95 % interval by Student's t: {mean, lo, hi, runs, reason}.
--
-- Runs are taken for independent. One run, or runs that are all alike, have no interval; none have
-- no mean.
CREATE MACRO over_runs(each) AS
[
    {
        'mean': s.mean,
        'lo': CASE WHEN s.error > 0 THEN s.mean - s.t * s.error END,
        'hi': CASE WHEN s.error > 0 THEN s.mean + s.t * s.error END,
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
            'error': list_stddev_samp(each) / sqrt(list_count(each)),
            't': t975(list_count(each) - 1)
        }
    ]
][1];

-- The interval of a number that cannot leave 0 to `most` (NULL: no end above).
CREATE MACRO kept_within(figure, most) AS
[
    {
        'mean': f.mean,
        'lo': CASE WHEN f.lo < 0 THEN 0 ELSE f.lo END,
        'hi': CASE WHEN f.hi > most THEN most ELSE f.hi END,
        'runs': f.runs,
        'reason': f.reason
    } FOR f IN [figure]
][1];
