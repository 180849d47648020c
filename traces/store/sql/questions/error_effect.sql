-- Do unforced runs with a tool error pass less often? An association, not an effect: hard tasks have both.
--
-- Estimand: the pass rate of unforced, graded runs with a tool error, and that of those without,
-- each clustered by task. One call that failed is an error, whatever is unknown of the others; a run
-- without one, of which a call does not say, has with_error NULL. limits says so in each row. Not for
-- what an error does to a run (inject it: recovery, paired), nor for a test of one row against the
-- other, as they share tasks.
WITH per_task AS (
    SELECT
        u.agent,
        u.model,
        u.has_error AS with_error,
        u.cluster,
        count(*) AS k_runs,
        count(*) FILTER (t.passed) AS k_passed
    FROM unforced_runs AS u
    JOIN trajectories AS t USING (trajectory_id)
    WHERE t.passed IS NOT NULL
    GROUP BY u.agent, u.model, with_error, u.cluster
),

rates AS (
    SELECT
        agent,
        model,
        with_error,
        sum(k_runs)::BIGINT AS runs,
        sum(k_passed)::BIGINT AS passed,
        clustered(list(k_passed::DOUBLE), list(k_runs::DOUBLE)) AS pass
    FROM per_task
    GROUP BY agent, model, with_error
)

SELECT
    agent,
    model,
    with_error,
    runs,
    passed,
    pass.clusters AS tasks,
    pass.rate AS pass_rate,
    pass.lo AS lo,
    pass.hi AS hi,
    pass.reason AS reason,
    'association_only' AS limits
FROM rates
ORDER BY agent, model, with_error;
