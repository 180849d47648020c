-- How long do calls and model requests take? Percentiles of seconds, and how many stalled.
-- default: stall = 30.0
-- range: stall = 0..
--
-- Of calls of tools and of requests to models whose duration is known; unknown counts the others.
-- stalled: took `stall` seconds or longer. Percentiles interpolate between the two nearest durations.
WITH timed AS (
    SELECT 'tool' AS kind, tool AS name, duration
    FROM tool_calls
    WHERE NOT coalesce(faulted, false)
    UNION ALL
    SELECT 'model' AS kind, u.model AS name, e.duration
    FROM exchanges AS e
    LEFT JOIN usage AS u ON e.trajectory_id = u.trajectory_id AND e.seq = u.seq
    WHERE e.kind = 'model' AND e.answered_by = 'live'
)

SELECT
    kind,
    name,
    count(duration) AS known,
    count(*) - count(duration) AS unknown,
    quantile_cont(duration, 0.5) AS p50,
    quantile_cont(duration, 0.9) AS p90,
    quantile_cont(duration, 0.99) AS p99,
    max(duration) AS longest,
    count(*) FILTER (duration >= $stall) AS stalled
FROM timed
GROUP BY kind, name
ORDER BY kind DESC, known DESC, name;
