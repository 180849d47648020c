-- Which tools are called, and which fail? Only errors that were not injected.
-- default: n = 20
-- range: n = 0..
SELECT
    tool,
    count(*) AS calls,
    count(*) FILTER (is_error) AS errors,
    count(*) FILTER (is_error IS NULL) AS unknown,
    count(DISTINCT trajectory_id) AS runs,
    count(DISTINCT trajectory_id) FILTER (is_error) AS runs_with_error,
    count(*) FILTER (is_error) / nullif(count(is_error), 0) AS error_rate,
    avg(duration) AS mean_seconds
FROM tool_calls
WHERE NOT coalesce(faulted, false)
GROUP BY tool
ORDER BY errors DESC, calls DESC, tool
LIMIT $n;
