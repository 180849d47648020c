-- Handled, recovery and silent failure per model, all operators pooled: compare only like mixes of faults.
-- default: scenario = null
--
-- Rates are NULL where what was counted was not measured alike (reason: mixed_judges,
-- mixed_verifiers). left_out: the faults that struck and have no class, most of them as left_out_as
-- says; what is known of them counts (ends_right_rate needs the verified end alone). _of, _unknown,
-- _least, _most and delivered_wrong are those of the view recovery.
WITH per_trace AS (
    SELECT
        agent,
        model,
        world,
        trace,
        list(DISTINCT measured_by) FILTER (settled) AS some_measures,
        list(excluded) FILTER (state != 'unfired' AND excluded IS NOT NULL) AS some_left_out,
        count(*) FILTER (state != 'unfired') AS k_fired,
        count(*) FILTER (state = 'absorbed') AS k_absorbed,
        count(*) FILTER (state = 'consumed') AS k_consumed,
        count(*) FILTER (judged) AS k_judged,
        count(*) FILTER (settled) AS k_settled,
        count(*) FILTER (noticeable) AS k_noticeable,
        count(*) FILTER (delivered_wrong) AS k_delivered_wrong,
        count(*) FILTER (delivered_wrong AND noticed IS NULL) AS k_delivered_wrong_notice_unknown,
        count(*) FILTER (recovered) AS k_recovered,
        count(*) FILTER (silent) AS k_silent,
        count(silent) AS k_silent_of,
        count(*) FILTER (handled) AS k_handled,
        count(handled) AS k_handled_of,
        count(*) FILTER (ends_right) AS k_ends_right,
        count(*) FILTER (unknown.handled) AS k_unknown_handled,
        count(*) FILTER (unknown.ends_right) AS k_unknown_ends_right,
        count(*) FILTER (unknown.recovered) AS k_unknown_recovered,
        count(*) FILTER (unknown.silent) AS k_unknown_silent
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
        sum(k_delivered_wrong)::BIGINT AS delivered_wrong,
        sum(k_delivered_wrong_notice_unknown)::BIGINT AS delivered_wrong_notice_unknown,
        unknown_bounds(sum(k_handled), sum(k_handled_of), sum(k_unknown_handled)) AS handled_bounds,
        unknown_bounds(sum(k_ends_right), sum(k_settled), sum(k_unknown_ends_right))
            AS ends_right_bounds,
        unknown_bounds(sum(k_recovered), sum(k_noticeable), sum(k_unknown_recovered))
            AS recovery_bounds,
        unknown_bounds(sum(k_silent), sum(k_silent_of), sum(k_unknown_silent)) AS silent_bounds,
        clustered(list(k_handled::DOUBLE), list(k_handled_of::DOUBLE)) AS handled,
        clustered(list(k_ends_right::DOUBLE), list(k_settled::DOUBLE)) AS ends_right,
        clustered(list(k_recovered::DOUBLE), list(k_noticeable::DOUBLE)) AS recovery,
        clustered(list(k_silent::DOUBLE), list(k_silent_of::DOUBLE)) AS silent
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
    handled_bounds.of AS handled_rate_of,
    handled_bounds.unknown AS handled_rate_unknown,
    handled_bounds.least AS handled_rate_least,
    handled_bounds.most AS handled_rate_most,
    ends_right.rate AS ends_right_rate,
    ends_right.lo AS ends_right_rate_lo,
    ends_right.hi AS ends_right_rate_hi,
    ends_right_bounds.of AS ends_right_rate_of,
    ends_right_bounds.unknown AS ends_right_rate_unknown,
    ends_right_bounds.least AS ends_right_rate_least,
    ends_right_bounds.most AS ends_right_rate_most,
    recovery.rate AS recovery_rate,
    recovery.lo AS recovery_rate_lo,
    recovery.hi AS recovery_rate_hi,
    recovery_bounds.of AS recovery_rate_of,
    recovery_bounds.unknown AS recovery_rate_unknown,
    recovery_bounds.least AS recovery_rate_least,
    recovery_bounds.most AS recovery_rate_most,
    silent.rate AS silent_rate,
    silent.lo AS silent_rate_lo,
    silent.hi AS silent_rate_hi,
    silent_bounds.of AS silent_rate_of,
    silent_bounds.unknown AS silent_rate_unknown,
    silent_bounds.least AS silent_rate_least,
    silent_bounds.most AS silent_rate_most,
    coalesce(not_alike, recovery.reason) AS reason,
    judged,
    settled,
    delivered_wrong,
    delivered_wrong_notice_unknown,
    coalesce(len(left_out_list), 0) AS left_out,
    list_mode(left_out_list) AS left_out_as
FROM told
ORDER BY agent, model, world;
