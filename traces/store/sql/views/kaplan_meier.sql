-- Kaplan-Meier over unforced runs, per agent and model: the share not yet failed after each step.
--
-- Estimand: the share of runs, over the tasks that these were drawn from, that have not failed by
-- that step if runs that ended right earlier had gone on like the others. curve says what failing
-- is: `ends_right`, every end but the right one; `not_silently_wrong`, the same but for those that
-- say so (abstained).
-- What failed without a crash did so at some step that nobody knows: survival is NULL unless every
-- such step gives the same, at_least dates these failures as late as can be, but not after the step
-- asked for, at_most those of longer runs after it and those of shorter ones in their first.
-- Formula: the product over steps of 1 - deaths / at_risk (Kaplan and Meier 1958), as the mean of
-- deaths weighted by the inverse of the chance not to have ended before (Robins and Rotnitzky
-- 1992). lo and hi are those of a clustered rate of these weighted cases, by task: lo of at_least,
-- hi of at_most. Budgets count as failures (by_budget of the deaths at that step); runs that nobody
-- graded are left out. Observed, not extrapolated: there is no row beyond the longest run.
-- Not for a chance at each step: tasks are pooled, and weak ones fail first, so that a curve that
-- flattens does not show an agent that warms up.
WITH graded AS (
    SELECT
        agent,
        model,
        cluster,
        n_steps,
        ending = 'budget' AS is_budget,
        ending = 'crashed' AS is_dated,
        unnest([
            {'curve': 'ends_right', 'died': died},
            {'curve': 'not_silently_wrong', 'died': died AND ending != 'abstained'}
        ], recursive := true)
    FROM clean_runs
    WHERE died IS NOT NULL
),

alike AS (
    SELECT
        dense_rank() OVER (ORDER BY agent, model, curve) AS part,
        agent,
        model,
        curve,
        cluster,
        n_steps,
        died,
        is_dated,
        count(*) AS runs,
        count(*) FILTER (died AND is_budget) AS by_budget
    FROM graded
    GROUP BY agent, model, curve, cluster, n_steps, died, is_dated
),

asked AS (
    SELECT DISTINCT part, n_steps AS step
    FROM alike
    UNION
    SELECT part, n AS step
    FROM (SELECT part, max(n_steps) AS longest FROM alike GROUP BY part)
    JOIN (SELECT unnest([3, 10, 20, 50, 100]) AS n) ON n <= longest
),

-- What runs share that ended alike, whatever their task: tasks are told apart only in per_task.
kinds AS (
    SELECT part, n_steps, died, is_dated, sum(runs) AS runs
    FROM alike
    GROUP BY part, n_steps, died, is_dated
),

dated AS (
    SELECT
        asked.part,
        asked.step,
        side.is_late,
        kinds.n_steps,
        kinds.died,
        kinds.is_dated,
        kinds.runs,
        kinds.died AND (kinds.n_steps <= asked.step OR side.is_late AND NOT is_dated) AS is_dead,
        CASE
            WHEN kinds.died AND NOT is_dated AND NOT side.is_late AND kinds.n_steps <= asked.step
                THEN 1
            ELSE least(kinds.n_steps, asked.step)
        END AS until
    FROM asked
    JOIN kinds USING (part)
    CROSS JOIN (SELECT unnest([true, false]) AS is_late) AS side
),

-- Who is seen last is known to be alive; who left before that is censored.
fates AS (
    SELECT
        *,
        NOT is_dead AND until = max(until) OVER (PARTITION BY part, step, is_late) AS is_alive
    FROM dated
),

ends AS (
    SELECT
        part,
        step,
        is_late,
        until,
        coalesce(sum(runs) FILTER (is_dead), 0) AS deaths,
        coalesce(sum(runs) FILTER (NOT is_dead AND NOT is_alive), 0) AS left_early,
        sum(sum(runs)) OVER (
            PARTITION BY part, step, is_late ORDER BY until
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS at_risk
    FROM fates
    GROUP BY part, step, is_late, until
),

weights AS (
    SELECT
        *,
        1 / coalesce(product(1 - left_early / nullif(at_risk - deaths, 0)) OVER (
            PARTITION BY part, step, is_late ORDER BY until
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 1) AS weight
    FROM ends
),

-- Made before tasks are joined: DuckDB joins them first otherwise, and there are many.
cases AS MATERIALIZED (
    SELECT part, step, is_late, n_steps, died, is_dated, is_dead, weight
    FROM fates
    JOIN weights USING (part, step, is_late, until)
    WHERE is_dead OR is_alive
),

per_task AS (
    SELECT
        part,
        step,
        is_late,
        cluster,
        coalesce(sum(runs * weight) FILTER (is_dead), 0)::DOUBLE AS k_dead,
        sum(runs * weight)::DOUBLE AS k_cases,
        sum(runs * weight * weight)::DOUBLE AS squares
    FROM cases
    JOIN alike USING (part, n_steps, died, is_dated)
    GROUP BY part, step, is_late, cluster
),

fitted AS (
    SELECT
        part,
        step,
        is_late,
        weighted(list(k_dead), list(k_cases), list(squares)) AS dead
    FROM per_task
    GROUP BY part, step, is_late
),

bounded AS (
    SELECT
        part,
        step,
        any_value(dead) FILTER (is_late) AS late,
        any_value(dead) FILTER (NOT is_late) AS early
    FROM fitted
    GROUP BY part, step
),

counted AS (
    SELECT
        part,
        agent,
        model,
        curve,
        n_steps,
        sum(runs)::BIGINT AS leaving,
        coalesce(sum(runs) FILTER (died), 0)::BIGINT AS deaths,
        sum(by_budget)::BIGINT AS by_budget
    FROM alike
    GROUP BY part, agent, model, curve, n_steps
),

parts AS (
    SELECT DISTINCT part, agent, model, curve
    FROM counted
)

SELECT
    parts.agent,
    parts.model,
    parts.curve,
    step,
    (
        SELECT sum(leaving) FROM counted
        WHERE counted.part = bounded.part AND counted.n_steps >= bounded.step
    )::BIGINT AS at_risk,
    coalesce(counted.deaths, 0) AS deaths,
    coalesce(counted.leaving - counted.deaths, 0) AS censored,
    coalesce(counted.by_budget, 0) AS by_budget,
    CASE WHEN abs(late.rate - early.rate) < 1e-9 THEN 1 - late.rate END AS survival,
    1 - late.rate AS at_least,
    1 - early.rate AS at_most,
    1 - late.hi AS lo,
    1 - early.lo AS hi,
    late.clusters AS tasks,
    CASE
        WHEN newcombe_reason(late, early) != 'conservative' THEN newcombe_reason(late, early)
        WHEN abs(late.rate - early.rate) >= 1e-9 THEN 'interval_censored'
        ELSE newcombe_reason(late, early)
    END AS reason
FROM bounded
JOIN parts USING (part)
LEFT JOIN counted ON bounded.part = counted.part AND bounded.step = counted.n_steps;
