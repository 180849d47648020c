-- How does reliability fall with repeats, other wording and faults? R(k, eps, lambda), per grid point.
-- default: k = 5, model = null
-- range: k = 1..64
--
-- R: mean over tasks of the chance that all of k trials pass. eps: the scenario, where a task is
-- told in other words as a scenario of its own. lam (lambda): the faults planned per run; realised is
-- what struck, per run. Runs that our harness broke are left out; k beyond the trials of a task is
-- NULL. The interval is t's over tasks, the default with few trials of each.
WITH planned AS (
    SELECT
        trajectory_id,
        count(*) FILTER (NOT sham) AS k_planned,
        count(*) FILTER (NOT sham AND state != 'unfired') AS k_struck
    FROM strikes
    GROUP BY trajectory_id
),

trials AS (
    SELECT
        t.agent,
        t.model,
        t.world,
        t.scenario AS eps,
        coalesce(planned.k_planned, 0) AS lam,
        coalesce(t.task, t.parent_id) AS task,
        count(*) AS n,
        count(*) FILTER (t.passed) AS c,
        sum(coalesce(planned.k_struck, 0)) AS k_struck
    FROM trajectories AS t
    LEFT JOIN planned USING (trajectory_id)
    WHERE
        t.passed IS NOT NULL
        AND coalesce(t.task, t.parent_id) IS NOT NULL
        AND coalesce(t.ended NOT IN ('harness', 'diverged', 'replay_miss'), true)
        AND coalesce(t.source, '') != 'replay'
        AND coalesce(t.condition, '') != 'shrink'
        AND ($model IS NULL OR t.model = $model)
    GROUP BY ALL
),

grid AS (
    SELECT
        agent,
        model,
        world,
        eps,
        lam,
        ks.k,
        count(*) FILTER (n >= ks.k) AS tasks,
        sum(n) FILTER (n >= ks.k)::BIGINT AS runs,
        sum(k_struck) FILTER (n >= ks.k) / sum(n) FILTER (n >= ks.k) AS realised,
        avg(pass_hat_k(n, c, ks.k)) AS r,
        stddev_samp(pass_hat_k(n, c, ks.k)) / sqrt(count(*) FILTER (n >= ks.k)) AS se
    FROM trials
    CROSS JOIN (SELECT unnest(range(1, $k::BIGINT + 1)) AS k) AS ks
    GROUP BY agent, model, world, eps, lam, ks.k
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
    CASE WHEN tasks >= 5 AND se > 0 THEN greatest(0, r - t975(tasks - 1) * se) END AS lo,
    CASE WHEN tasks >= 5 AND se > 0 THEN least(1, r + t975(tasks - 1) * se) END AS hi,
    CASE
        WHEN tasks = 0 THEN 'fewer_trials_than_k'
        WHEN tasks < 5 THEN 'few_tasks'
        WHEN se = 0 THEN 'all_tasks_agree'
    END AS reason
FROM grid
ORDER BY agent, model, world, eps, lam, k;
