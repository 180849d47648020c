-- How often runs end right, and how often silently wrong, for each temperature, policy and kind of run.
--
-- ends_right of known: of all runs whose end the verifier knows, whatever the clean runs of the task do.
-- silent_wrong of settled: of the runs with a verdict, so of tasks whose clean runs pass.
-- Intervals: 95 %, clustered by task (macro clustered). Temperature `all` pools the three.
WITH every AS (
    SELECT * FROM runs
    UNION ALL
    SELECT * REPLACE ('all' AS temperature) FROM runs
),

per_task AS (
    SELECT
        temperature,
        policy,
        kind,
        task,
        count(*) AS k_runs,
        count(ends_right)::DOUBLE AS k_known,
        count(*) FILTER (ends_right)::DOUBLE AS k_right,
        count(*) FILTER (state IS NOT NULL AND excluded IS NULL)::DOUBLE AS k_settled,
        count(*) FILTER (class = 'silent_wrong' AND excluded IS NULL)::DOUBLE AS k_silent
    FROM every
    GROUP BY temperature, policy, kind, task
),

fitted AS (
    SELECT
        temperature,
        policy,
        kind,
        sum(k_runs)::BIGINT AS runs,
        clustered(list(k_right ORDER BY task), list(k_known ORDER BY task)) AS good,
        clustered(
            list(k_silent ORDER BY task) FILTER (k_settled > 0),
            list(k_settled ORDER BY task) FILTER (k_settled > 0)
        ) AS silent
    FROM per_task
    GROUP BY temperature, policy, kind
)

SELECT
    temperature,
    policy,
    kind,
    runs,
    good.cases::BIGINT AS known,
    good.hits::BIGINT AS ends_right,
    round(good.rate, 4) AS rate,
    round(good.lo, 4) AS lo,
    round(good.hi, 4) AS hi,
    silent.cases::BIGINT AS settled,
    silent.hits::BIGINT AS silent_wrong,
    round(silent.rate, 4) AS silent_rate,
    round(silent.lo, 4) AS silent_lo,
    round(silent.hi, 4) AS silent_hi
FROM fitted
ORDER BY ALL
