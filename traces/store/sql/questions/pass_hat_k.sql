-- Would it pass k times in a row? Mean over tasks of the probability that all of k trials pass.
-- default: k = 4
-- range: k = 1..1000
--
-- Estimand: the mean over tasks of the chance that k independent recordings of a task all pass
-- (pass_hat_k), or any of them (pass_at_k). A trial is a recording: clean runs from their first step,
-- and of faulted ones one for each root recording, since continuations of one prefix are no trials
-- of the task; where a recording has several, each stands for it alike. Formula: the mean over all
-- sets of k recordings of the product of their shares that passed, with one run each
-- C(c, k) / C(n, k). A run that its budget ended has failed. Tasks with fewer than k trials are left
-- out. Not for agents that were given different tasks.
WITH recordings AS (
    SELECT
        t.agent,
        t.model,
        t.scenario,
        t.task,
        t.condition,
        t.world,
        coalesce(roots.root_id, t.trajectory_id) AS recording,
        avg((coalesce(t.passed, false) AND t.ended IS DISTINCT FROM 'budget')::INT) AS share
    FROM trajectories AS t
    LEFT JOIN roots USING (trajectory_id)
    WHERE
        (t.passed IS NOT NULL OR t.ended = 'budget')
        AND t.task IS NOT NULL
        AND (t.parent_id IS NULL OR t.condition IS DISTINCT FROM 'clean')
        AND coalesce(t.ended NOT IN ('harness', 'diverged', 'replay_miss'), true)
        AND coalesce(t.source, '') != 'replay'
        AND coalesce(t.condition, '') != 'shrink'
    GROUP BY ALL
),

trials AS (
    SELECT
        agent,
        model,
        scenario,
        condition,
        world,
        count(*) AS n,
        all_pass(list(share), least($k, count(*))) AS all_of,
        all_pass(list(1 - share), least($k, count(*))) AS none_of
    FROM recordings
    GROUP BY agent, model, scenario, task, condition, world
)

SELECT
    agent,
    model,
    scenario,
    condition,
    world,
    ks.k,
    count(*) FILTER (n >= ks.k) AS tasks,
    avg(CASE WHEN n >= ks.k THEN all_of[ks.k + 1] END) AS pass_hat_k,
    avg(CASE WHEN n >= ks.k THEN 1 - none_of[ks.k + 1] END) AS pass_at_k
FROM trials
CROSS JOIN (SELECT unnest(range(1, $k::BIGINT + 1)) AS k) AS ks
GROUP BY agent, model, scenario, condition, world, ks.k
ORDER BY agent, model, scenario, condition, world, ks.k;
