-- What is in the atlas? Runs, models, grades and calls of each source.
WITH counted_calls AS (
    SELECT run_id, count(*) AS calls, count(*) FILTER (is_error) AS errors,
        count(*) FILTER (is_error IS NULL) AS unknown_calls
    FROM call
    GROUP BY run_id
)

SELECT
    source,
    count(*) AS runs,
    count(DISTINCT model) AS models,
    count(DISTINCT (suite, task)) AS tasks,
    count(passed) AS graded,
    count(*) FILTER (passed) AS passed,
    count(*) - count(passed) AS unknown,
    coalesce(sum(calls), 0)::BIGINT AS calls,
    coalesce(sum(errors), 0)::BIGINT AS errors,
    coalesce(sum(unknown_calls), 0)::BIGINT AS unknown_calls
FROM run
LEFT JOIN counted_calls USING (run_id)
GROUP BY source
ORDER BY runs DESC, source;
