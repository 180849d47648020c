-- Counts and clustered rates of faults, shams left out: by op, and by site within an op.
WITH per_trace AS (
    SELECT
        CASE WHEN grouping(place) = 1 THEN 'op' ELSE 'site' END AS counted_by,
        op,
        family,
        agent,
        model,
        world,
        place,
        persist,
        detect,
        trace,
        list(DISTINCT place) AS some_places,
        list(DISTINCT persist) AS some_persists,
        list(DISTINCT detect) AS some_detects,
        list(DISTINCT scenario) AS some_scenarios,
        count(*) FILTER (state != 'unfired') AS k_fired,
        count(*) FILTER (state = 'absorbed') AS k_absorbed,
        count(*) FILTER (state = 'ended_before') AS k_ended_before,
        count(*) FILTER (state = 'consumed') AS k_consumed,
        count(*) FILTER (state = 'undecided') AS k_undecided,
        count(*) FILTER (state != 'unfired' AND NOT settled) AS k_excluded,
        count(*) FILTER (judged) AS k_judged,
        count(*) FILTER (settled) AS k_settled,
        count(*) FILTER (judged AND noticed) AS k_noticed,
        count(*) FILTER (judged AND class = 'recovered') AS k_recovered,
        count(*) FILTER (judged AND class = 'recovered' AND noticed) AS k_recovered_noticed,
        count(*) FILTER (judged AND class = 'masked') AS k_masked,
        count(*) FILTER (judged AND class = 'honest_fail') AS k_honest_fail,
        count(*) FILTER (judged AND class = 'noticed_wrong') AS k_noticed_wrong,
        count(*) FILTER (judged AND class = 'silent_wrong') AS k_silent_wrong,
        count(*) FILTER (judged AND class = 'crashed') AS k_crashed,
        count(*) FILTER (
            settled AND state = 'absorbed'
            OR judged AND class IN ('recovered', 'masked', 'honest_fail')
        ) AS k_handled
    FROM strikes
    WHERE NOT sham
    GROUP BY GROUPING SETS (
        (op, family, agent, model, world, trace),
        (op, family, agent, model, world, trace, place, persist, detect)
    )
)

SELECT
    counted_by,
    op,
    family,
    agent,
    model,
    world,
    place,
    persist,
    detect,
    list_sort(list_distinct(flatten(list(some_places)))) AS places,
    list_sort(list_distinct(flatten(list(some_persists)))) AS persists,
    list_sort(list_distinct(flatten(list(some_detects)))) AS detects,
    list_sort(list_distinct(flatten(list(some_scenarios)))) AS scenarios,
    sum(k_fired)::BIGINT AS fired,
    sum(k_absorbed)::BIGINT AS absorbed,
    sum(k_ended_before)::BIGINT AS ended_before,
    sum(k_consumed)::BIGINT AS consumed,
    sum(k_undecided)::BIGINT AS undecided,
    sum(k_excluded)::BIGINT AS excluded,
    sum(k_judged)::BIGINT AS judged,
    sum(k_settled)::BIGINT AS settled,
    sum(k_noticed)::BIGINT AS noticed,
    sum(k_recovered)::BIGINT AS recovered,
    sum(k_masked)::BIGINT AS masked,
    sum(k_honest_fail)::BIGINT AS honest_fail,
    sum(k_noticed_wrong)::BIGINT AS noticed_wrong,
    sum(k_silent_wrong)::BIGINT AS silent_wrong,
    sum(k_crashed)::BIGINT AS crashed,
    clustered(list(k_recovered::DOUBLE), list(k_judged::DOUBLE)) AS recovery,
    clustered(list(k_recovered_noticed::DOUBLE), list(k_noticed::DOUBLE)) AS given_notice,
    clustered(list(k_silent_wrong::DOUBLE), list(k_judged::DOUBLE)) AS silent,
    clustered(list(k_handled::DOUBLE), list(k_settled::DOUBLE)) AS handled
FROM per_trace
GROUP BY counted_by, op, family, agent, model, world, place, persist, detect;
