-- Mean of one number per trace with its 95 % interval by Student's t: {mean, lo, hi, traces, reason}.
--
-- Fewer than five traces, or traces that are all alike, have no interval; none have no mean.
CREATE MACRO over_traces(each) AS
[
    {
        'mean': s.mean,
        'lo': CASE WHEN s.traces >= 5 AND s.error > 0 THEN s.mean - t975(s.traces - 1) * s.error END,
        'hi': CASE WHEN s.traces >= 5 AND s.error > 0 THEN s.mean + t975(s.traces - 1) * s.error END,
        'traces': s.traces,
        'reason': CASE WHEN s.traces < 5 THEN 'few_traces' WHEN s.error = 0 THEN 'all_alike' END
    } FOR s IN [
        {
            'mean': list_avg(each),
            'traces': coalesce(list_count(each), 0),
            'error': list_stddev_samp(each) / sqrt(list_count(each))
        }
    ]
][1];
