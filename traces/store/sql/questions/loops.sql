-- Which calls does a run make over and over? The same tool with the same arguments.
-- default: least = 3, n = 20
-- range: least = 2.., n = 0..
--
-- in_a_row is the longest sequence without another call between; same_result, whether every known
-- result was alike, so that nothing was to be learnt by calling again.
WITH calls AS (
    SELECT
        trajectory_id,
        step,
        tool,
        arguments,
        result,
        is_error,
        row_number() OVER run
        - row_number() OVER (
            PARTITION BY trajectory_id, tool, arguments ORDER BY step, position, call_id
        ) AS island
    FROM tool_calls
    WINDOW run AS (PARTITION BY trajectory_id ORDER BY step, position, call_id)
),

per_island AS (
    SELECT
        trajectory_id,
        tool,
        arguments,
        count(*) AS k_calls,
        count(*) FILTER (is_error) AS k_errors,
        min(step) AS first_step,
        max(step) AS last_step,
        list(DISTINCT result) AS results
    FROM calls
    GROUP BY trajectory_id, tool, arguments, island
)

SELECT
    trajectory_id,
    tool,
    sum(k_calls)::BIGINT AS calls,
    max(k_calls) AS in_a_row,
    sum(k_errors)::BIGINT AS errors,
    len(list_distinct(flatten(list(results)))) = 1 AS same_result,
    min(first_step) AS first_step,
    max(last_step) AS last_step,
    arguments
FROM per_island
GROUP BY trajectory_id, tool, arguments
HAVING sum(k_calls) >= $least
ORDER BY in_a_row DESC, calls DESC, trajectory_id, tool, arguments
LIMIT $n;
