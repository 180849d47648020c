-- What changed? Errors, failures, recovery, tools and cost of the last days against those before.
-- default: since = 7.0, against = 28.0, at = null, agent = null, model = null
-- range: since = 0.., against = 0..
--
-- recent is the `since` days up to `at` (a time as text, in UTC; the newest run without), earlier the
-- `against` days before these. Rates are clustered by task (without one, by run), recovery and silent
-- failures by root recording; each has its interval in both windows. cost, tokens, seconds and steps
-- are means over tasks of unforced runs. hazard is the chance to fail in a step, half_life the steps
-- after which half of the runs have failed, if it is constant. p is of the score test of two rates on
-- effective cases, or of Welch's test of two means; p_adjusted is Holm's over all rows, which are all
-- that is tested at once. reason: few_traces (fewer than five in a window), or mixed_judges and
-- mixed_verifiers if recovery was measured differently. new: a tool that only one window has.
WITH clock AS (
    SELECT coalesce($at::TIMESTAMP, max(recorded_at)::TIMESTAMP) AS stop FROM trajectories
),

runs AS (
    SELECT
        t.*,
        coalesce(t.task, t.trajectory_id) AS cluster,
        CASE
            WHEN t.recorded_at::TIMESTAMP > stop - to_microseconds(($since * 86400e6)::BIGINT)
                THEN 'recent'
            ELSE 'earlier'
        END AS span
    FROM trajectories AS t, clock
    WHERE
        t.recorded_at::TIMESTAMP <= stop
        AND t.recorded_at::TIMESTAMP
        > stop - to_microseconds((($since + $against) * 86400e6)::BIGINT)
        AND ($agent IS NULL OR t.agent = $agent)
        AND ($model IS NULL OR t.model = $model)
),

lives AS (
    SELECT
        runs.agent,
        runs.model,
        runs.span,
        runs.cluster,
        runs.ended,
        runs.cost_usd,
        runs.tokens,
        runs.seconds,
        clean_runs.n_steps,
        clean_runs.died
    FROM runs
    JOIN clean_runs USING (trajectory_id)
),

calls AS (
    SELECT
        runs.agent,
        runs.model,
        runs.span,
        runs.cluster,
        tool_calls.tool,
        tool_calls.is_error
    FROM runs
    JOIN tool_calls USING (trajectory_id)
    WHERE runs.condition = 'clean' AND NOT coalesce(tool_calls.faulted, false)
),

call_totals AS (
    SELECT
        agent,
        model,
        span,
        cluster,
        count(*) AS total
    FROM calls
    GROUP BY agent, model, span, cluster
),

cells AS (
    SELECT
        agent,
        model,
        span,
        cluster,
        'tool_errors' AS measure,
        tool AS part,
        count(*) FILTER (is_error) AS k_hits,
        count(is_error) AS k_cases,
        NULL AS measures
    FROM calls
    GROUP BY agent, model, span, cluster, tool
    UNION ALL
    SELECT
        totals.agent,
        totals.model,
        totals.span,
        totals.cluster,
        'tool_share',
        tools.tool,
        (
            SELECT count(*)
            FROM calls
            WHERE
                calls.agent IS NOT DISTINCT FROM totals.agent
                AND calls.model IS NOT DISTINCT FROM totals.model
                AND calls.span = totals.span
                AND calls.cluster = totals.cluster
                AND calls.tool = tools.tool
        ),
        totals.total,
        NULL
    FROM call_totals AS totals
    JOIN (SELECT DISTINCT agent, model, tool FROM calls) AS tools
        ON
            tools.agent IS NOT DISTINCT FROM totals.agent
            AND tools.model IS NOT DISTINCT FROM totals.model
    UNION ALL
    SELECT
        agent,
        model,
        span,
        cluster,
        unnest(['failed', 'unfinished', 'hazard']),
        NULL,
        unnest([
            count(*) FILTER (died),
            count(*) FILTER (ended != 'final'),
            count(*) FILTER (died)
        ]),
        unnest([count(died), count(ended), coalesce(sum(n_steps) FILTER (died IS NOT NULL), 0)]),
        NULL
    FROM lives
    GROUP BY agent, model, span, cluster
    UNION ALL
    SELECT
        runs.agent,
        runs.model,
        runs.span,
        injected.trace,
        unnest(['recovery', 'silent']),
        NULL,
        unnest([
            count(*) FILTER (injected.recovered),
            count(*) FILTER (injected.silent)
        ]),
        unnest([count(injected.recovered), count(injected.silent)]),
        list(DISTINCT injected.measured_by) FILTER (injected.settled)
    FROM judged_injections AS injected
    JOIN runs USING (trajectory_id)
    WHERE NOT injected.sham
    GROUP BY runs.agent, runs.model, runs.span, injected.trace
),

rates AS (
    SELECT
        agent,
        model,
        measure,
        part,
        mixed(flatten(list(measures) FILTER (measures IS NOT NULL))) AS not_alike,
        clustered(
            list(k_hits::DOUBLE) FILTER (span = 'recent'),
            list(k_cases::DOUBLE) FILTER (span = 'recent')
        ) AS recent,
        clustered(
            list(k_hits::DOUBLE) FILTER (span = 'earlier'),
            list(k_cases::DOUBLE) FILTER (span = 'earlier')
        ) AS earlier
    FROM cells
    GROUP BY agent, model, measure, part
),

task_means AS (
    UNPIVOT (
        SELECT
            agent,
            model,
            span,
            cluster,
            avg(cost_usd)::DOUBLE AS cost,
            avg(tokens)::DOUBLE AS tokens,
            avg(seconds)::DOUBLE AS seconds,
            avg(n_steps)::DOUBLE AS steps
        FROM lives
        GROUP BY agent, model, span, cluster
    )
    ON cost, tokens, seconds, steps
    INTO NAME measure VALUE amount
),

means AS (
    SELECT
        agent,
        model,
        measure,
        over_traces(list(amount) FILTER (span = 'recent')) AS recent,
        over_traces(list(amount) FILTER (span = 'earlier')) AS earlier,
        mean_change_p(
            avg(amount) FILTER (span = 'recent'),
            stddev_samp(amount) FILTER (span = 'recent')
            / sqrt(count(*) FILTER (span = 'recent')),
            count(*) FILTER (span = 'recent'),
            avg(amount) FILTER (span = 'earlier'),
            stddev_samp(amount) FILTER (span = 'earlier')
            / sqrt(count(*) FILTER (span = 'earlier')),
            count(*) FILTER (span = 'earlier')
        ) AS p
    FROM task_means
    GROUP BY agent, model, measure
),

compared AS (
    SELECT
        agent,
        model,
        measure,
        part,
        recent.rate AS recent,
        recent.lo AS recent_lo,
        recent.hi AS recent_hi,
        recent.cases::BIGINT AS recent_cases,
        recent.clusters AS recent_traces,
        earlier.rate AS earlier,
        earlier.lo AS earlier_lo,
        earlier.hi AS earlier_hi,
        earlier.cases::BIGINT AS earlier_cases,
        earlier.clusters AS earlier_traces,
        CASE WHEN not_alike IS NULL THEN rate_change_p(recent, earlier) END AS p,
        coalesce(
            not_alike,
            CASE
                WHEN coalesce(least(recent.clusters, earlier.clusters), 0) < 5 THEN 'few_traces'
            END
        ) AS reason
    FROM rates
    UNION ALL
    SELECT
        agent,
        model,
        measure,
        NULL,
        recent.mean,
        recent.lo,
        recent.hi,
        recent.traces,
        recent.traces,
        earlier.mean,
        earlier.lo,
        earlier.hi,
        earlier.traces,
        earlier.traces,
        p,
        CASE WHEN least(recent.traces, earlier.traces) < 5 THEN 'few_traces' END
    FROM means
),

adjusted AS (
    SELECT
        *,
        list(p) OVER everything AS ps,
        row_number() OVER everything AS place
    FROM compared
    WINDOW everything AS (
        ORDER BY agent, model, measure, part
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
)

SELECT
    agent,
    model,
    measure,
    part,
    recent,
    recent_lo,
    recent_hi,
    recent_cases,
    recent_traces,
    earlier,
    earlier_lo,
    earlier_hi,
    earlier_cases,
    earlier_traces,
    recent - earlier AS change,
    CASE WHEN measure = 'hazard' THEN ln(0.5) / nullif(ln(1 - recent), 0) END AS recent_half_life,
    CASE WHEN measure = 'hazard' THEN ln(0.5) / nullif(ln(1 - earlier), 0) END AS earlier_half_life,
    p,
    holm(ps)[place] AS p_adjusted,
    reason
FROM adjusted
ORDER BY agent, model, measure, part;
