-- Which tools are called, and which fail? Only errors that were not injected.
--
-- error_rate is of the calls that say whether they failed; NULL if most of them do not. at_least and
-- at_most bound the rate of all calls: none of the unknown ones failed, or all.
-- default: n = 20
-- range: n = 0..
SELECT
    tool,
    count(*) AS calls,
    count(*) FILTER (is_error) AS errors,
    count(*) FILTER (is_error IS NULL) AS unknown,
    count(DISTINCT trajectory_id) AS runs,
    count(DISTINCT trajectory_id) FILTER (is_error) AS runs_with_error,
    CASE
        WHEN 2 * count(is_error) > count(*) THEN count(*) FILTER (is_error) / count(is_error)
    END AS error_rate,
    count(*) FILTER (is_error) / count(*) AS at_least,
    count(*) FILTER (is_error IS NOT false) / count(*) AS at_most,
    avg(duration) AS mean_seconds
FROM tool_calls
WHERE NOT coalesce(faulted, false)
GROUP BY tool
ORDER BY errors DESC, calls DESC, tool
LIMIT $n;
