-- Popular figures per trajectory, exactly as usually defined; none is a success rate.
--
-- A step here is a tool call that says whether it failed (is_error known); the order is that of
-- the steps, then of the exchanges. What is wrong with each:
-- task_passed: one draw; repeat it and report pass^k.
-- trajectory_length: chosen by the agent; a verbose one looks safer per step.
-- tool_error_rate = errors / length: a mean of such ratios is ruled by short, failed runs; pool them.
-- recovery_rate, the share of errors whose next step is sane (it worked, and it is not the same
--   call of a stateful tool again): a burst err, err, ok scores 1/2 though it recovered, an error
--   at the end scores 0, and a sane next step is not a right result. No errors: NULL, not 1.
-- hard_failure, no final answer: mixes crash, budget and honest abstention; runs that our harness
--   broke are NULL.
-- implied_step_success_rate = 1 - errors / length: too low, as errors are recovered from, and too
--   high, as silent failures are not in it; the two need not cancel. See survival.
-- unsafe_retries: an error followed by the same call of a stateful tool; counted apart, as its
--   success hides that the first call may have had its effect.
WITH calls AS (
    SELECT
        trajectory_id,
        is_error,
        lead(is_error) OVER told AS next_error,
        is_error AND coalesce(
            lead(tool) OVER told = tool
            AND lead(arguments) OVER told = arguments
            AND lead(read_only) OVER told = false,
            false
        ) AS unsafe_retry
    FROM tool_calls
    WHERE is_error IS NOT NULL
    WINDOW told AS (PARTITION BY trajectory_id ORDER BY step, seq, call_id)
),

counts AS (
    SELECT
        trajectory_id,
        count(*) AS k_calls,
        count(*) FILTER (is_error) AS k_errors,
        count(*) FILTER (unsafe_retry) AS k_unsafe,
        count(*) FILTER (is_error AND NOT coalesce(next_error, true) AND NOT unsafe_retry) AS k_sane
    FROM calls
    GROUP BY trajectory_id
)

SELECT
    t.trajectory_id,
    t.agent,
    t.model,
    t.scenario,
    t.condition,
    t.passed AS task_passed,
    counts.k_calls AS trajectory_length,
    counts.k_errors AS errors,
    counts.k_errors / nullif(counts.k_calls, 0) AS tool_error_rate,
    counts.k_sane / nullif(counts.k_errors, 0) AS recovery_rate,
    CASE WHEN t.ended != 'harness' THEN t.ended != 'final' END AS hard_failure,
    1 - counts.k_errors / nullif(counts.k_calls, 0) AS implied_step_success_rate,
    counts.k_unsafe AS unsafe_retries
FROM trajectories AS t
LEFT JOIN counts USING (trajectory_id);
