-- Would it pass k times in a row? pass^k by both conventions in use, and unknown ends both ways.
-- default: k = 5
-- range: k = 1..100
--
-- Estimand: the mean over tasks of the chance that k independent trials all pass. unbiased: C(c, k) /
-- C(n, k) over tasks with at least k trials of known end (tau-bench). plug_in: (c / n)^k over the same
-- tasks, which is too high for few trials. unbiased_failed counts trials of unknown end as failed.
-- flaky: the share of these tasks that pass and fail. Only agents with a task of k trials are listed.
WITH trials AS (
    SELECT
        suite,
        agent,
        model,
        task,
        count(*) AS runs,
        count(passed) AS n,
        count(*) FILTER (passed) AS c
    FROM run
    WHERE mistake_step IS NULL
    GROUP BY suite, agent, model, task
)

SELECT
    suite,
    agent,
    model,
    ks.k,
    count(*) FILTER (n >= ks.k) AS tasks,
    avg(pass_hat_k(n, c, ks.k)) AS unbiased,
    avg(CASE WHEN n >= ks.k THEN pow(c / n, ks.k) END) AS plug_in,
    avg(pass_hat_k(runs, c, ks.k)) AS unbiased_failed,
    avg((c > 0 AND c < n)::INT) FILTER (n >= ks.k) AS flaky
FROM trials
CROSS JOIN (SELECT unnest(range(1, $k::BIGINT + 1)) AS k) AS ks
GROUP BY suite, agent, model, ks.k
HAVING max(n) >= $k
ORDER BY suite, agent, model, ks.k;
