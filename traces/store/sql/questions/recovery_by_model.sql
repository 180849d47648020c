-- Handled, recovery and silent failure per model, all operators pooled: compare only like mixes of faults.
-- default: scenario = null
--
-- Rates are NULL where what was counted was not measured alike (reason: mixed_judges,
-- mixed_verifiers). left_out: the faults that struck and are in none of the rates, most of them as
-- left_out_as says.
WITH per_trace AS (
    SELECT
        agent,
        model,
        world,
        trace,
        list(DISTINCT measured_by) FILTER (settled) AS some_measures,
        list(excluded) FILTER (state != 'unfired' AND NOT settled) AS some_left_out,
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
    FROM judged_injections
    WHERE NOT sham AND ($scenario IS NULL OR scenario = $scenario)
    GROUP BY agent, model, world, trace
),

pooled AS (
    SELECT
        agent,
        model,
        world,
        count(*) AS traces,
        mixed(flatten(list(some_measures))) AS not_alike,
        flatten(list(some_left_out)) AS left_out_list,
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
),

told AS (
    SELECT * REPLACE (
        CASE WHEN not_alike IS NULL THEN handled END AS handled,
        CASE WHEN not_alike IS NULL THEN ends_right END AS ends_right,
        CASE WHEN not_alike IS NULL THEN recovery END AS recovery,
        CASE WHEN not_alike IS NULL THEN silent END AS silent
    )
    FROM pooled
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
    coalesce(not_alike, recovery.reason) AS reason,
    judged,
    settled,
    coalesce(len(left_out_list), 0) AS left_out,
    list_mode(left_out_list) AS left_out_as
FROM told
ORDER BY agent, model, world;
