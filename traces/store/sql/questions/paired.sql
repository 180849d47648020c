-- What do faults cost, trace by trace? Clean and faulted runs of the same trace, per operator.
-- default: model = null
--
-- Estimand: delta, the mean over root recordings of the share of clean runs that passed less the
-- share of faulted runs that passed; clean_rate and faulted_rate are the two means. op NULL: all
-- operators. Formula: every root weighs the same, and the interval is that of what roots lost less
-- what they gained (gained_and_lost). p tests that the fault changes
-- nothing, at the level of recordings: within a stratum (a prefix, with the twins of its
-- experiment) the runs are exchangeable, so that any number of twins against any number of faulted
-- runs is a fair comparison (Cochran, Mantel and Haenszel); NULL below five traces. p_holm is p adjusted over the operators
-- of one agent, model and world. p_exact and p_mid are McNemar's, of one clean run against one
-- faulted run in each trace; NULL with more (several_runs), as the majority of three is another
-- random variable than one run. b counts traces where most clean and fewer than half of the faulted
-- runs passed, c the reverse, which without any effect is noise of replaying.
-- All is NULL where several verifiers of one recording said what passed (mixed_verifiers). A run
-- that its budget ended has failed. Not for faults that persist in how later runs start, nor
-- for a difference between operators.
WITH struck AS (
    SELECT trajectory_id, any_value(op) AS op
    FROM judged_injections
    WHERE NOT sham AND state != 'unfired'
    GROUP BY trajectory_id
    HAVING count(DISTINCT op) = 1
),

runs AS (
    SELECT
        t.agent,
        t.model,
        t.world,
        coalesce(roots.root_id, t.parent_id, t.task) AS trace,
        coalesce(t.control_group, t.parent_id, t.task) AS stratum,
        t.condition,
        coalesce(t.verifier_of, t.verifier) AS verifier,
        coalesce(t.passed AND t.ended IS DISTINCT FROM 'budget', false)::INT AS y,
        struck.op
    FROM trajectories AS t
    LEFT JOIN roots USING (trajectory_id)
    LEFT JOIN struck USING (trajectory_id)
    WHERE
        (t.passed IS NOT NULL OR t.ended = 'budget')
        AND coalesce(t.parent_id, t.task) IS NOT NULL
        AND coalesce(t.source, '') != 'replay'
        AND coalesce(t.ended NOT IN ('harness', 'diverged', 'replay_miss'), true)
        AND ($model IS NULL OR t.model = $model)
),

clean AS (
    SELECT agent, model, world, trace, stratum, count(*) AS runs, sum(y) AS passes
    FROM runs
    WHERE condition = 'clean'
    GROUP BY agent, model, world, trace, stratum
),

faulted AS (
    SELECT
        agent,
        model,
        world,
        trace,
        stratum,
        op,
        list(DISTINCT verifier) AS verifiers,
        count(*) AS runs,
        sum(y) AS passes
    FROM runs
    WHERE condition = 'fault'
    GROUP BY
        GROUPING SETS (
            (agent, model, world, trace, stratum), (agent, model, world, trace, stratum, op)
        )
    HAVING grouping(op) = 1 OR op IS NOT NULL
),

strata AS (
    SELECT
        faulted.agent,
        faulted.model,
        faulted.world,
        faulted.op,
        faulted.trace,
        faulted.verifiers,
        clean.runs AS k_clean,
        faulted.runs AS k_faulted,
        clean.passes / clean.runs AS x,
        faulted.passes / faulted.runs AS y,
        faulted.passes - stratum_expected(
            clean.passes + faulted.passes, clean.runs + faulted.runs, faulted.runs
        ) AS excess,
        stratum_variance(
            clean.passes + faulted.passes, clean.runs + faulted.runs, faulted.runs
        ) AS variance
    FROM faulted
    JOIN clean
        ON
            faulted.trace = clean.trace
            AND faulted.stratum = clean.stratum
            AND faulted.agent IS NOT DISTINCT FROM clean.agent
            AND faulted.model IS NOT DISTINCT FROM clean.model
            AND faulted.world IS NOT DISTINCT FROM clean.world
),

per_trace AS (
    SELECT
        agent,
        model,
        world,
        op,
        trace,
        len(list_distinct(flatten(list(verifiers)))) > 1 AS has_several_verifiers,
        sum(k_clean) AS k_clean,
        sum(k_faulted) AS k_faulted,
        avg(x) AS x,
        avg(y) AS y,
        pow(count(*), 2) / sum(1 / k_clean) AS x_runs,
        pow(count(*), 2) / sum(1 / k_faulted) AS y_runs,
        sum(excess) AS excess,
        sum(variance) AS variance
    FROM strata
    GROUP BY agent, model, world, op, trace
),

fitted AS (
    SELECT
        agent,
        model,
        world,
        op,
        count(*) AS traces,
        bool_or(has_several_verifiers) AS is_mixed,
        max(greatest(k_clean, k_faulted)) = 1 AS is_one_to_one,
        avg(x ORDER BY trace) AS clean_rate,
        avg(y ORDER BY trace) AS faulted_rate,
        gained_and_lost(
            list(x - y ORDER BY trace), list(least(x_runs, y_runs) ORDER BY trace)
        ) AS difference,
        CASE WHEN count(*) >= 5 THEN mantel_haenszel(sum(excess), sum(variance)) END AS p,
        count(*) FILTER (x >= 0.5 AND y >= 0.5) AS both_passed,
        count(*) FILTER (x >= 0.5 AND y < 0.5) AS b,
        count(*) FILTER (x < 0.5 AND y >= 0.5) AS c
    FROM per_trace
    GROUP BY agent, model, world, op
),

told AS (
    SELECT * REPLACE (
        CASE WHEN NOT is_mixed THEN clean_rate END AS clean_rate,
        CASE WHEN NOT is_mixed THEN faulted_rate END AS faulted_rate,
        CASE WHEN NOT is_mixed THEN difference END AS difference,
        CASE WHEN NOT is_mixed THEN p END AS p,
        CASE WHEN NOT is_mixed THEN both_passed END AS both_passed,
        CASE WHEN NOT is_mixed THEN b END AS b,
        CASE WHEN NOT is_mixed THEN c END AS c
    )
    FROM fitted
)

SELECT
    agent,
    model,
    world,
    op,
    traces,
    clean_rate,
    faulted_rate,
    clean_rate - faulted_rate AS delta,
    difference.lo AS lo,
    difference.hi AS hi,
    p,
    CASE WHEN op IS NOT NULL THEN
        (holm(list(p ORDER BY op) OVER family))[(row_number() OVER (family ORDER BY op))]
    END AS p_holm,
    both_passed,
    b,
    c,
    CASE WHEN is_one_to_one THEN mcnemar_exact(b, c) END AS p_exact,
    CASE WHEN is_one_to_one THEN mcnemar_midp(b, c) END AS p_mid,
    both_passed / nullif(both_passed + b, 0) AS retention,
    CASE
        WHEN is_mixed THEN 'mixed_verifiers'
        WHEN difference.reason != 'conservative' THEN difference.reason
        WHEN p IS NULL THEN 'all_runs_agree'
        ELSE difference.reason
    END AS reason
FROM told
WINDOW family AS (PARTITION BY agent, model, world, op IS NULL)
ORDER BY agent, model, world, op NULLS FIRST;
