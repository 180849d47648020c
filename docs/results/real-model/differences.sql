-- What a fault, a policy, or a quiet instead of a loud fault changes in the share of runs that end right.
--
-- Estimand: the mean over tasks of the difference of two shares of the same task, each task with the same
-- weight. lower and upper: 95 % (macro paired_bounds, 2.5 % on each side), each row for itself.
-- Temperature `all`: a task's mean over the three.
WITH every AS (
    SELECT * FROM runs
    UNION ALL
    SELECT * REPLACE ('all' AS temperature) FROM runs
),

shares AS (
    SELECT temperature, policy, kind, task, avg(ends_right::INT) AS share
    FROM every
    WHERE kind != 'recording'
    GROUP BY ALL
),

pairs AS (
    SELECT a.temperature, a.policy, a.kind, 'twin' AS against, a.task, a.share - b.share AS gain
    FROM shares AS a
    JOIN shares AS b USING (temperature, policy, task)
    WHERE a.kind != 'twin' AND b.kind = 'twin'
    UNION ALL
    SELECT a.temperature, a.policy, a.kind, 'policy none', a.task, a.share - b.share
    FROM shares AS a
    JOIN shares AS b USING (temperature, kind, task)
    WHERE a.policy != 'none' AND b.policy = 'none'
    UNION ALL
    SELECT a.temperature, a.policy, a.kind, 'http_status', a.task, a.share - b.share
    FROM shares AS a
    JOIN shares AS b USING (temperature, policy, task)
    WHERE a.kind = 'digit' AND b.kind = 'http_status'
),

fitted AS (
    SELECT
        temperature,
        policy,
        kind,
        against,
        count(gain) AS tasks,
        paired_bounds(list(gain ORDER BY task) FILTER (gain IS NOT NULL), 0.025) AS found
    FROM pairs
    GROUP BY temperature, policy, kind, against
)

SELECT
    temperature,
    policy,
    kind,
    against,
    tasks,
    round(found.difference, 4) AS difference,
    round(found.lower, 4) AS lower,
    round(found.upper, 4) AS upper
FROM fitted
ORDER BY ALL
