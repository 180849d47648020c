-- The lives of clean runs with their number of steps with an error: the basis of hazards.
--
-- error_steps counts steps of which at least one tool call failed; NULL unless each call says.
-- has_error is true as soon as one call failed, false if each says that it did not, else NULL.
WITH calls AS (
    SELECT
        trajectory_id,
        count(*) AS k_calls,
        count(*) FILTER (is_error IS NULL) AS k_unknown,
        count(DISTINCT step) FILTER (is_error) AS k_error_steps
    FROM tool_calls
    GROUP BY trajectory_id
)

SELECT
    clean_runs.*,
    CASE WHEN coalesce(calls.k_unknown, 0) = 0
        THEN least(coalesce(calls.k_error_steps, 0), clean_runs.n_steps)
    END AS error_steps,
    CASE
        WHEN calls.k_error_steps > 0 THEN true
        WHEN coalesce(calls.k_unknown, 0) = 0 THEN false
    END AS has_error
FROM clean_runs
LEFT JOIN calls USING (trajectory_id);
