-- Clean runs from their first step, without injection, fork or pipeline, and how each ended.
--
-- ending: passed; failed; abstained (failed, and says so); crashed; budget (still going when its
-- budget was up, whatever was graded then); stopped by our harness or by the end of a recording;
-- ungraded. died: whether the run did not end right: NULL for stopped and ungraded ones, which are
-- no evidence of either. Only a crash has a date: what else failed did so in one of its steps.
-- cluster: the runs of one task, which rates cluster by. Suites that were imported number their tasks
-- alike, so there it is the task of a scenario; a task recorded here is the same in all scenarios.
WITH clean AS (
    SELECT
        trajectory_id,
        agent,
        model,
        scenario,
        coalesce(task, trajectory_id) AS task,
        CASE
            WHEN task IS NULL THEN trajectory_id
            WHEN fidelity = 'bytes' THEN task
            ELSE concat_ws('/', scenario, task)
        END AS cluster,
        n_steps,
        CASE
            WHEN ended = 'budget' THEN 'budget'
            WHEN passed THEN 'passed'
            WHEN ended = 'crash' THEN 'crashed'
            WHEN ended IN ('harness', 'diverged', 'replay_miss') THEN 'stopped'
            WHEN passed IS NULL THEN 'ungraded'
            WHEN ended = 'abstain' THEN 'abstained'
            ELSE 'failed'
        END AS ending
    FROM trajectories
    WHERE
        condition = 'clean'
        AND parent_id IS NULL
        AND n_steps > 0
        AND trajectory_id NOT IN (
            SELECT trajectory_id FROM injections WHERE trajectory_id IS NOT NULL
        )
        AND trajectory_id NOT IN (SELECT trajectory_id FROM stages WHERE trajectory_id IS NOT NULL)
)

SELECT
    *,
    CASE WHEN ending NOT IN ('stopped', 'ungraded') THEN ending != 'passed' END AS died
FROM clean;
