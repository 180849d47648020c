-- How often is a tool called again after an error, and with success? Of the calls that follow in a run.
--
-- An episode is a run's consecutive calls of one tool that failed; the next call of that tool ends
-- it with success, or the run ends without one (given_up). calls_to_success counts the calls after
-- the first failed one, the one that worked included; unchanged are episodes whose second call had
-- the same arguments. Only calls that say whether they failed, and that no fault changed.
WITH calls AS (
    SELECT
        trajectory_id,
        tool,
        is_error,
        arguments,
        row_number() OVER own AS place,
        row_number() OVER own
        - row_number() OVER (
            PARTITION BY trajectory_id, tool, is_error ORDER BY step, position, call_id
        ) AS island,
        lead(arguments) OVER own AS next_arguments,
        count(*) OVER (PARTITION BY trajectory_id, tool) AS k_calls
    FROM tool_calls
    WHERE is_error IS NOT NULL AND NOT coalesce(faulted, false)
    WINDOW own AS (PARTITION BY trajectory_id, tool ORDER BY step, position, call_id)
),

episodes AS (
    SELECT
        trajectory_id,
        tool,
        count(*) AS errors,
        max(place) < any_value(k_calls) AS worked,
        arg_min(arguments = next_arguments, place) AS is_unchanged,
        min(place) < any_value(k_calls) AS was_retried
    FROM calls
    WHERE is_error
    GROUP BY trajectory_id, tool, island
)

SELECT
    tool,
    count(*) AS episodes,
    count(*) FILTER (was_retried) AS retried,
    count(*) FILTER (worked) AS worked,
    count(*) FILTER (NOT worked) AS given_up,
    avg(errors) FILTER (worked) AS calls_to_success,
    max(errors) AS longest,
    count(*) FILTER (is_unchanged) AS unchanged
FROM episodes
GROUP BY tool
ORDER BY episodes DESC, tool;
