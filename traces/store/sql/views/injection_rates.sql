-- Counts and clustered rates of faults without shams: by op, and by site within an op.
--
-- What was measured by another judge version, or another verifier of the same recording, is apart.
--
-- Each rate has its known cases (_of), its unknown ones (_unknown), and its bounds with all of these
-- counted against (_least) and for (_most).
--
-- Who asks for one of the two pays for that one only: the other's rows are never made.
WITH alike AS (
    SELECT
        op,
        family,
        agent,
        model,
        world,
        trace,
        place,
        persist,
        detect,
        scenario,
        measured_by,
        judge_version,
        verifier,
        count(*) FILTER (state != 'unfired') AS k_fired,
        count(*) FILTER (state = 'absorbed') AS k_absorbed,
        count(*) FILTER (state = 'ended_before') AS k_ended_before,
        count(*) FILTER (state = 'consumed') AS k_consumed,
        count(*) FILTER (state = 'undecided') AS k_undecided,
        count(*) FILTER (state != 'unfired' AND excluded IS NOT NULL) AS k_excluded,
        count(*) FILTER (state != 'unfired' AND several_faults) AS k_several_faults,
        count(*) FILTER (judged AND by_budget) AS k_by_budget,
        count(*) FILTER (judged) AS k_judged,
        count(*) FILTER (settled) AS k_settled,
        count(*) FILTER (judged AND noticed) AS k_noticed,
        count(*) FILTER (noticeable) AS k_noticeable,
        count(*) FILTER (judged AND class = 'recovered') AS k_recovered,
        count(*) FILTER (recovered) AS k_recovered_noticeable,
        count(*) FILTER (judged AND class = 'recovered' AND noticed) AS k_recovered_noticed,
        count(*) FILTER (judged AND class = 'masked') AS k_masked,
        count(*) FILTER (judged AND class = 'honest_fail') AS k_honest_fail,
        count(*) FILTER (judged AND class = 'noticed_wrong') AS k_noticed_wrong,
        count(*) FILTER (judged AND class = 'silent_wrong') AS k_silent_wrong,
        count(*) FILTER (judged AND class = 'crashed') AS k_crashed,
        count(*) FILTER (delivered_wrong) AS k_delivered_wrong,
        count(*) FILTER (delivered_wrong AND noticed IS NULL) AS k_delivered_wrong_notice_unknown,
        count(*) FILTER (silent) AS k_silent,
        count(silent) AS k_silent_of,
        count(*) FILTER (handled) AS k_handled,
        count(handled) AS k_handled_of,
        count(*) FILTER (ends_right) AS k_ends_right,
        count(*) FILTER (unknown.recovered) AS k_unknown_recovered,
        count(*) FILTER (unknown.noticed) AS k_unknown_noticed,
        count(*) FILTER (unknown.silent) AS k_unknown_silent,
        count(*) FILTER (unknown.handled) AS k_unknown_handled,
        count(*) FILTER (unknown.ends_right) AS k_unknown_ends_right
    FROM judged_injections
    WHERE NOT sham
    GROUP BY ALL
),

counted AS (
    SELECT
        'op' AS counted_by,
        NULL::VARCHAR AS by_place,
        NULL::VARCHAR AS by_persist,
        NULL::VARCHAR AS by_detect,
        *
    FROM alike
    UNION ALL
    SELECT
        'site' AS counted_by,
        place AS by_place,
        persist AS by_persist,
        detect AS by_detect,
        *
    FROM alike
),

per_trace AS (
    SELECT
        counted_by,
        op,
        family,
        agent,
        model,
        world,
        measured_by,
        by_place,
        by_persist,
        by_detect,
        trace,
        list(DISTINCT place) AS some_places,
        list(DISTINCT persist) AS some_persists,
        list(DISTINCT detect) AS some_detects,
        list(DISTINCT scenario) AS some_scenarios,
        list(DISTINCT judge_version) AS some_judge_versions,
        list(DISTINCT verifier) AS some_verifiers,
        sum(COLUMNS('^k_.*'))::BIGINT
    FROM counted
    GROUP BY ALL
),

pooled AS (
    SELECT
        counted_by,
        op,
        family,
        agent,
        model,
        world,
        measured_by,
        by_place,
        by_persist,
        by_detect,
        list_sort(list_distinct(flatten(list(some_places)))) AS places,
        list_sort(list_distinct(flatten(list(some_persists)))) AS persists,
        list_sort(list_distinct(flatten(list(some_detects)))) AS detects,
        list_sort(list_distinct(flatten(list(some_scenarios)))) AS scenarios,
        list_sort(list_distinct(flatten(list(some_judge_versions)))) AS judge_versions,
        list_sort(list_distinct(flatten(list(some_verifiers)))) AS verifiers,
        each_clustered([
            {
                'hits': list(k_recovered_noticeable::DOUBLE),
                'cases': list(k_noticeable::DOUBLE)
            },
            {'hits': list(k_recovered_noticed::DOUBLE), 'cases': list(k_noticed::DOUBLE)},
            {'hits': list(k_silent::DOUBLE), 'cases': list(k_silent_of::DOUBLE)},
            {'hits': list(k_handled::DOUBLE), 'cases': list(k_handled_of::DOUBLE)},
            {'hits': list(k_ends_right::DOUBLE), 'cases': list(k_settled::DOUBLE)}
        ]) AS rates,
        sum(COLUMNS('^k_(.*)'))::BIGINT AS '\1'
    FROM per_trace
    GROUP BY ALL
),

rated AS (
    SELECT
        * EXCLUDE (rates, handled, ends_right, silent),
        unknown_bounds(recovered_noticeable, noticeable, unknown_recovered) AS recovery_bounds,
        unknown_bounds(recovered_noticed, noticed, unknown_noticed) AS given_notice_bounds,
        unknown_bounds(silent, silent_of, unknown_silent) AS silent_bounds,
        unknown_bounds(handled, handled_of, unknown_handled) AS handled_bounds,
        unknown_bounds(ends_right, settled, unknown_ends_right) AS ends_right_bounds,
        rates[1] AS recovery,
        rates[2] AS given_notice,
        rates[3] AS silent,
        rates[4] AS handled,
        rates[5] AS ends_right
    FROM pooled
)

SELECT
    counted_by,
    op,
    family,
    agent,
    model,
    world,
    measured_by,
    by_place AS place,
    by_persist AS persist,
    by_detect AS detect,
    fired,
    absorbed,
    consumed,
    judged,
    recovery.n_eff AS n_eff,
    recovery.clusters AS traces,
    recovery.rate AS recovery_rate,
    recovery.lo AS lo,
    recovery.hi AS hi,
    recovery.lo AS recovery_rate_lo,
    recovery.hi AS recovery_rate_hi,
    recovery.reason AS recovery_rate_reason,
    recovery_bounds.of AS recovery_rate_of,
    recovery_bounds.unknown AS recovery_rate_unknown,
    recovery_bounds.least AS recovery_rate_least,
    recovery_bounds.most AS recovery_rate_most,
    given_notice.rate AS recovery_given_notice,
    given_notice.lo AS recovery_given_notice_lo,
    given_notice.hi AS recovery_given_notice_hi,
    given_notice.reason AS recovery_given_notice_reason,
    given_notice_bounds.of AS recovery_given_notice_of,
    given_notice_bounds.unknown AS recovery_given_notice_unknown,
    given_notice_bounds.least AS recovery_given_notice_least,
    given_notice_bounds.most AS recovery_given_notice_most,
    silent.rate AS silent_rate,
    silent.lo AS silent_rate_lo,
    silent.hi AS silent_rate_hi,
    silent.reason AS silent_rate_reason,
    silent_bounds.of AS silent_rate_of,
    silent_bounds.unknown AS silent_rate_unknown,
    silent_bounds.least AS silent_rate_least,
    silent_bounds.most AS silent_rate_most,
    handled.rate AS handled_rate,
    handled.lo AS handled_rate_lo,
    handled.hi AS handled_rate_hi,
    handled.reason AS handled_rate_reason,
    handled_bounds.of AS handled_rate_of,
    handled_bounds.unknown AS handled_rate_unknown,
    handled_bounds.least AS handled_rate_least,
    handled_bounds.most AS handled_rate_most,
    ends_right.rate AS ends_right_rate,
    ends_right.lo AS ends_right_rate_lo,
    ends_right.hi AS ends_right_rate_hi,
    ends_right.reason AS ends_right_rate_reason,
    ends_right_bounds.of AS ends_right_rate_of,
    ends_right_bounds.unknown AS ends_right_rate_unknown,
    ends_right_bounds.least AS ends_right_rate_least,
    ends_right_bounds.most AS ends_right_rate_most,
    CASE
        WHEN consumed = 0 THEN 'nothing_consumed'
        WHEN judged = 0 THEN 'nothing_judged'
        WHEN noticeable = 0 THEN 'nothing_noticeable'
        ELSE recovery.reason
    END AS reason,
    noticeable,
    noticed,
    recovered,
    masked,
    honest_fail,
    noticed_wrong,
    silent_wrong,
    crashed,
    delivered_wrong,
    delivered_wrong_notice_unknown,
    ended_before,
    undecided,
    excluded,
    several_faults,
    by_budget,
    settled,
    places,
    persists,
    detects,
    scenarios,
    judge_versions,
    verifiers
FROM rated;
