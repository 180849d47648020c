-- What do faults cost, trace by trace? Clean against faulted runs of the same trace, per operator.
-- default: model = null
--
-- op NULL: all operators. delta: mean over traces of the share of clean runs that passed, less that
-- of faulted ones, with a t interval over traces: the figure to publish. McNemar takes one pair per
-- trace (a majority of its clean, and of its faulted runs), so that pairs are independent; b is
-- clean only, c is faulted only, which without any effect is noise of replaying. Over all operators
-- there is no McNemar test (operators_pooled): a majority of runs hides the few operators that do
-- harm, so that it finds nothing where delta is large. p_holm is p_mid adjusted over the operators
-- of one agent, model and world.
WITH struck AS (
    SELECT trajectory_id, any_value(op) AS op
    FROM strikes
    WHERE NOT sham AND state != 'unfired' AND NOT several_faults
    GROUP BY trajectory_id
    HAVING count(DISTINCT op) = 1
),

runs AS (
    SELECT
        t.agent,
        t.model,
        t.world,
        coalesce(t.parent_id, t.task) AS trace,
        t.condition,
        t.passed,
        struck.op
    FROM trajectories AS t
    LEFT JOIN struck USING (trajectory_id)
    WHERE
        t.passed IS NOT NULL
        AND coalesce(t.parent_id, t.task) IS NOT NULL
        AND coalesce(t.source, '') != 'replay'
        AND coalesce(t.ended NOT IN ('harness', 'diverged', 'replay_miss'), true)
        AND ($model IS NULL OR t.model = $model)
),

clean AS (
    SELECT agent, model, world, trace, avg(passed::INT) AS passing
    FROM runs
    WHERE condition = 'clean'
    GROUP BY agent, model, world, trace
),

faulted AS (
    SELECT agent, model, world, trace, op, avg(passed::INT) AS passing
    FROM runs
    WHERE condition = 'fault'
    GROUP BY GROUPING SETS ((agent, model, world, trace), (agent, model, world, trace, op))
    HAVING grouping(op) = 1 OR op IS NOT NULL
),

pairs AS (
    SELECT
        faulted.agent,
        faulted.model,
        faulted.world,
        faulted.op,
        clean.passing - faulted.passing AS d,
        clean.passing AS c,
        clean.passing >= 0.5 AS c_passed,
        faulted.passing >= 0.5 AS f_passed
    FROM faulted
    JOIN clean
        ON
            faulted.trace = clean.trace
            AND faulted.agent IS NOT DISTINCT FROM clean.agent
            AND faulted.model IS NOT DISTINCT FROM clean.model
            AND faulted.world IS NOT DISTINCT FROM clean.world
),

counted AS (
    SELECT
        agent,
        model,
        world,
        op,
        count(*) AS traces,
        avg(c) AS clean_rate,
        avg(c - d) AS faulted_rate,
        avg(d) AS delta,
        stddev_samp(d) / sqrt(count(*)) AS se,
        count(*) FILTER (c_passed AND f_passed) AS both_passed,
        count(*) FILTER (c_passed AND NOT f_passed) AS b,
        count(*) FILTER (NOT c_passed AND f_passed) AS c_only
    FROM pairs
    GROUP BY agent, model, world, op
),

tested AS (
    SELECT
        *,
        mcnemar_exact(b, c_only) AS p_exact,
        mcnemar_midp(b, c_only) AS p_mid
    FROM counted
)

SELECT
    agent,
    model,
    world,
    op,
    traces,
    clean_rate,
    faulted_rate,
    delta,
    CASE WHEN traces >= 5 AND se > 0 THEN delta - t975(traces - 1) * se END AS lo,
    CASE WHEN traces >= 5 AND se > 0 THEN delta + t975(traces - 1) * se END AS hi,
    CASE WHEN traces >= 5 AND se > 0 THEN 2 * t_sf(abs(delta / se), traces - 1) END AS p_t,
    both_passed,
    b,
    c_only AS c,
    CASE WHEN op IS NOT NULL THEN p_exact END AS p_exact,
    CASE WHEN op IS NOT NULL THEN p_mid END AS p_mid,
    CASE WHEN op IS NOT NULL THEN
        (holm(list(p_mid ORDER BY op) OVER family))[(row_number() OVER (family ORDER BY op))]
    END AS p_holm,
    both_passed / nullif(both_passed + b, 0) AS retention,
    CASE
        WHEN traces < 5 THEN 'few_traces'
        WHEN se = 0 THEN 'all_traces_agree'
        WHEN op IS NULL THEN 'operators_pooled'
    END AS reason
FROM tested
WINDOW family AS (PARTITION BY agent, model, world, op IS NULL)
ORDER BY agent, model, world, op NULLS FIRST;
