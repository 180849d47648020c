-- What happens after an error? Runs of consecutive tool errors: how they end, and how the run does.
-- default: model = null
--
-- Only unforced runs, and calls that say whether they failed. local_rate: a call that worked came
-- after the episode; eventual_rate: the run also passed; gap, of runs whose end is known, is what
-- a sane next step does not tell. calls_to_recover counts the errors of episodes that ended.
WITH calls AS (
    SELECT
        trajectory_id,
        is_error,
        row_number() OVER told
        - row_number() OVER (PARTITION BY trajectory_id, is_error ORDER BY step, seq, call_id)
            AS island,
        row_number() OVER told AS place,
        count(*) OVER (PARTITION BY trajectory_id) AS k_calls
    FROM tool_calls
    WHERE is_error IS NOT NULL AND NOT coalesce(faulted, false)
    WINDOW told AS (PARTITION BY trajectory_id ORDER BY step, seq, call_id)
),

episodes AS (
    SELECT trajectory_id, count(*) AS k_errors, max(place) < any_value(k_calls) AS ended
    FROM calls
    WHERE is_error
    GROUP BY trajectory_id, island
),

per_task AS (
    SELECT
        t.agent,
        t.model,
        u.cluster,
        count(*)::DOUBLE AS k_episodes,
        count(*) FILTER (e.ended)::DOUBLE AS k_ended,
        count(*) FILTER (t.passed IS NOT NULL)::DOUBLE AS k_known,
        count(*) FILTER (e.ended AND t.passed IS NOT NULL)::DOUBLE AS k_known_ended,
        count(*) FILTER (e.ended AND t.passed)::DOUBLE AS k_eventual,
        sum(e.k_errors) FILTER (e.ended) AS k_errors_ended
    FROM episodes AS e
    JOIN trajectories AS t USING (trajectory_id)
    JOIN unforced_runs AS u USING (trajectory_id)
    WHERE $model IS NULL OR t.model = $model
    GROUP BY t.agent, t.model, u.cluster
),

rates AS (
    SELECT
        agent,
        model,
        sum(k_episodes)::BIGINT AS episodes,
        sum(k_errors_ended) / nullif(sum(k_ended), 0) AS calls_to_recover,
        (sum(k_known_ended) - sum(k_eventual)) / nullif(sum(k_known), 0) AS gap,
        clustered(list(k_ended), list(k_episodes)) AS local,
        clustered(list(k_eventual), list(k_known)) AS eventual
    FROM per_task
    GROUP BY agent, model
)

SELECT
    agent,
    model,
    episodes,
    local.rate AS local_rate,
    local.lo AS local_lo,
    local.hi AS local_hi,
    eventual.rate AS eventual_rate,
    eventual.lo AS eventual_lo,
    eventual.hi AS eventual_hi,
    gap,
    calls_to_recover,
    local.reason AS reason
FROM rates
ORDER BY agent, model;
