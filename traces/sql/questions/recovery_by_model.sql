-- Handled, recovery and silent failure per model, all operators pooled: compare only like mixes of faults.
-- default: scenario = null
WITH per_trace AS (
    SELECT
        agent,
        model,
        world,
        trace,
        count(*) FILTER (state != 'unfired') AS k_fired,
        count(*) FILTER (state = 'absorbed') AS k_absorbed,
        count(*) FILTER (state = 'consumed') AS k_consumed,
        count(*) FILTER (judged) AS k_judged,
        count(*) FILTER (settled) AS k_settled,
        count(*) FILTER (noticeable) AS k_noticeable,
        count(*) FILTER (noticeable AND class = 'recovered') AS k_recovered,
        count(*) FILTER (judged AND class = 'silent_wrong') AS k_silent,
        count(*) FILTER (handled) AS k_handled,
        count(*) FILTER (ends_right) AS k_ends_right
    FROM strikes
    WHERE NOT sham AND ($scenario IS NULL OR scenario = $scenario)
    GROUP BY agent, model, world, trace
),

pooled AS (
    SELECT
        agent,
        model,
        world,
        count(*) AS traces,
        sum(k_fired)::BIGINT AS fired,
        sum(k_absorbed)::BIGINT AS absorbed,
        sum(k_consumed)::BIGINT AS consumed,
        sum(k_judged)::BIGINT AS judged,
        sum(k_settled)::BIGINT AS settled,
        clustered(list(k_handled::DOUBLE), list(k_settled::DOUBLE)) AS handled,
        clustered(list(k_ends_right::DOUBLE), list(k_settled::DOUBLE)) AS ends_right,
        clustered(list(k_recovered::DOUBLE), list(k_noticeable::DOUBLE)) AS recovery,
        clustered(list(k_silent::DOUBLE), list(k_judged::DOUBLE)) AS silent
    FROM per_trace
    GROUP BY agent, model, world
)

SELECT
    agent,
    model,
    world,
    traces,
    fired,
    absorbed,
    consumed,
    handled.rate AS handled_rate,
    handled.lo AS handled_rate_lo,
    handled.hi AS handled_rate_hi,
    ends_right.rate AS ends_right_rate,
    ends_right.lo AS ends_right_rate_lo,
    ends_right.hi AS ends_right_rate_hi,
    recovery.rate AS recovery_rate,
    recovery.lo AS recovery_rate_lo,
    recovery.hi AS recovery_rate_hi,
    silent.rate AS silent_rate,
    silent.lo AS silent_rate_lo,
    silent.hi AS silent_rate_hi,
    recovery.reason AS reason,
    judged,
    settled
FROM pooled
ORDER BY agent, model, world;
