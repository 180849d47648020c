-- Would it pass k times in a row? Mean over tasks of the chance that all of k trials pass.
-- default: k = 4
-- range: k = 1..1000
WITH trials AS (
    SELECT
        agent,
        model,
        scenario,
        task,
        condition,
        world,
        count(*) AS n,
        count(*) FILTER (passed) AS c
    FROM trajectories
    WHERE
        passed IS NOT NULL
        AND task IS NOT NULL
        AND coalesce(ended != 'harness', true)
        AND coalesce(condition, '') != 'shrink'
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
    avg(pass_hat_k(n, c, ks.k)) AS pass_hat_k,
    avg(pass_at_k(n, c, ks.k)) AS pass_at_k
FROM trials
CROSS JOIN (SELECT unnest(range(1, $k::BIGINT + 1)) AS k) AS ks
GROUP BY agent, model, scenario, condition, world, ks.k
ORDER BY agent, model, scenario, condition, world, ks.k;
