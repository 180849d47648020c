-- How often does each agent pass? The published convention beside the rate of runs with a known end.
--
-- Estimand: the share of runs that pass, over tasks like these. published_rate counts a run without
-- a grade as failed, as leaderboards do; rate leaves it out, and unknown says how many there are.
-- lo and hi: 95 % interval of rate, clustered by task. Runs that were chosen because they failed are
-- left out. Not for agents that were given different tasks.
WITH per_task AS (
    SELECT
        suite,
        agent,
        model,
        task,
        count(*) AS k_runs,
        count(passed)::DOUBLE AS k_graded,
        count(*) FILTER (passed)::DOUBLE AS k_passed
    FROM run
    WHERE mistake_step IS NULL
    GROUP BY suite, agent, model, task
),

rates AS (
    SELECT
        suite,
        agent,
        model,
        sum(k_runs)::BIGINT AS runs,
        sum(k_passed)::BIGINT AS passed,
        (sum(k_runs) - sum(k_graded))::BIGINT AS unknown,
        clustered(list(k_passed) FILTER (k_graded > 0), list(k_graded) FILTER (k_graded > 0)) AS known
    FROM per_task
    GROUP BY suite, agent, model
)

SELECT
    suite,
    agent,
    model,
    runs,
    known.clusters AS tasks,
    passed,
    unknown,
    passed / runs AS published_rate,
    known.rate AS rate,
    known.lo AS lo,
    known.hi AS hi,
    known.reason AS reason
FROM rates
ORDER BY suite, rate DESC NULLS LAST, agent, model;
