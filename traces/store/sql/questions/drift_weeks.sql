-- How do the rates go from week to week? Tool errors, failed runs, recovery and cost, with intervals.
-- default: weeks = 8, agent = null, model = null
-- range: weeks = 1..
--
-- A week begins on Monday, in UTC. Rates and means are those of `drift`, in each week by itself; a week
-- with fewer than five tasks (or root recordings) has no interval. `drift` tests for a change.
WITH runs AS (
    SELECT
        *,
        coalesce(task, trajectory_id) AS cluster,
        date_trunc('week', recorded_at::TIMESTAMP)::DATE AS week
    FROM trajectories
    WHERE
        recorded_at::TIMESTAMP
        > (SELECT max(recorded_at)::TIMESTAMP FROM trajectories) - to_days(7 * $weeks::INT)
        AND ($agent IS NULL OR agent = $agent)
        AND ($model IS NULL OR model = $model)
),

cells AS (
    SELECT
        runs.week,
        runs.agent,
        runs.model,
        'tool_errors' AS measure,
        runs.cluster,
        count(*) FILTER (tool_calls.is_error) AS k_hits,
        count(tool_calls.is_error) AS k_cases
    FROM runs
    JOIN tool_calls USING (trajectory_id)
    WHERE runs.condition = 'clean' AND NOT coalesce(tool_calls.faulted, false)
    GROUP BY runs.week, runs.agent, runs.model, runs.cluster
    UNION ALL
    SELECT
        runs.week,
        runs.agent,
        runs.model,
        'failed',
        runs.cluster,
        count(*) FILTER (clean_runs.died),
        count(clean_runs.died)
    FROM runs
    JOIN clean_runs USING (trajectory_id)
    GROUP BY runs.week, runs.agent, runs.model, runs.cluster
    UNION ALL
    SELECT
        runs.week,
        runs.agent,
        runs.model,
        'recovery',
        injected.trace,
        count(*) FILTER (injected.recovered),
        count(*) FILTER (injected.noticeable)
    FROM judged_injections AS injected
    JOIN runs USING (trajectory_id)
    WHERE NOT injected.sham
    GROUP BY runs.week, runs.agent, runs.model, injected.trace
),

rates AS (
    SELECT
        week,
        agent,
        model,
        measure,
        clustered(list(k_hits::DOUBLE), list(k_cases::DOUBLE)) AS found
    FROM cells
    GROUP BY week, agent, model, measure
),

costs AS (
    SELECT
        week,
        agent,
        model,
        over_traces(list(amount)) AS found
    FROM (
        SELECT
            week,
            agent,
            model,
            cluster,
            avg(cost_usd)::DOUBLE AS amount
        FROM runs
        WHERE condition = 'clean'
        GROUP BY week, agent, model, cluster
    )
    WHERE amount IS NOT NULL
    GROUP BY week, agent, model
)

SELECT
    week,
    agent,
    model,
    measure,
    found.rate AS amount,
    found.lo AS amount_lo,
    found.hi AS amount_hi,
    found.cases::BIGINT AS cases,
    found.clusters AS traces,
    found.reason AS reason
FROM rates
WHERE found.cases > 0
UNION ALL
SELECT
    week,
    agent,
    model,
    'cost',
    found.mean,
    found.lo,
    found.hi,
    found.traces,
    found.traces,
    found.reason
FROM costs
ORDER BY agent, model, measure, week;
