-- How does reliability fall with repeats, rephrasing and faults? R(k, eps, lambda), per grid point.
-- default: k = 5, model = null
-- range: k = 1..64
--
-- R: mean over tasks of the chance that all of k trials pass. A trial is a recording, as in
-- pass_hat_k: continuations of one prefix are none of the task. eps: the scenario, where a task is
-- told in other words as a scenario of its own. lam (lambda): the faults planned per run; realised is
-- what struck, per run. A run that its budget ended has failed; runs that our harness broke are left
-- out; k beyond the trials of a task is NULL. The interval is that of a clustered rate of
-- tasks that weigh alike, each of as many cases as n trials have sets of k that share none (Hoeffding
-- 1948 bounds the variance of a mean over all sets by it, so that k > 1 is conservative). Not for agents that were given different tasks.
WITH planned AS (
    SELECT
        trajectory_id,
        count(*) FILTER (NOT sham) AS k_planned,
        count(*) FILTER (NOT sham AND state != 'unfired') AS k_faulted
    FROM judged_injections
    GROUP BY trajectory_id
),

recordings AS (
    SELECT
        t.agent,
        t.model,
        t.world,
        t.scenario AS eps,
        coalesce(planned.k_planned, 0) AS lam,
        coalesce(t.task, t.parent_id) AS task,
        coalesce(roots.root_id, t.trajectory_id) AS recording,
        count(*) AS runs,
        avg((coalesce(t.passed, false) AND t.ended IS DISTINCT FROM 'budget')::INT) AS share,
        sum(coalesce(planned.k_faulted, 0)) AS k_faulted
    FROM trajectories AS t
    LEFT JOIN roots USING (trajectory_id)
    LEFT JOIN planned USING (trajectory_id)
    WHERE
        (t.passed IS NOT NULL OR t.ended = 'budget')
        AND coalesce(t.task, t.parent_id) IS NOT NULL
        AND (t.parent_id IS NULL OR t.condition IS DISTINCT FROM 'clean')
        AND coalesce(t.ended NOT IN ('harness', 'diverged', 'replay_miss'), true)
        AND coalesce(t.source, '') != 'replay'
        AND coalesce(t.condition, '') != 'shrink'
        AND ($model IS NULL OR t.model = $model)
    GROUP BY ALL
),

trials AS (
    SELECT
        agent,
        model,
        world,
        eps,
        lam,
        task,
        count(*) AS n,
        sum(runs) AS runs,
        sum(k_faulted) AS k_faulted,
        all_pass(list(share), least($k, count(*))) AS all_of
    FROM recordings
    GROUP BY agent, model, world, eps, lam, task
),

each_k AS (
    SELECT trials.*, ks.k, CASE WHEN n >= ks.k THEN all_of[ks.k + 1] END AS chance
    FROM trials
    CROSS JOIN (SELECT unnest(range(1, $k::BIGINT + 1)) AS k) AS ks
),

grid AS (
    SELECT
        agent,
        model,
        world,
        eps,
        lam,
        k,
        count(chance) AS tasks,
        sum(runs) FILTER (chance IS NOT NULL)::BIGINT AS runs,
        sum(k_faulted) FILTER (chance IS NOT NULL) / sum(runs) FILTER (chance IS NOT NULL)
            AS realised,
        avg(chance) AS r,
        over_equal_traces(
            list(chance ORDER BY task) FILTER (chance IS NOT NULL),
            list(n / k ORDER BY task) FILTER (chance IS NOT NULL)
        ) AS found
    FROM each_k
    GROUP BY agent, model, world, eps, lam, k
)

SELECT
    agent,
    model,
    world,
    eps,
    lam,
    realised,
    k,
    tasks,
    runs,
    r,
    found.lo AS lo,
    found.hi AS hi,
    CASE
        WHEN tasks = 0 THEN 'fewer_trials_than_k'
        WHEN tasks < 5 THEN 'few_tasks'
        WHEN k > 1 AND found.lo IS NOT NULL THEN 'conservative'
        ELSE found.reason
    END AS reason
FROM grid
ORDER BY agent, model, world, eps, lam, k;
