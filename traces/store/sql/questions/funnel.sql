-- How far do faults get, per operator and detectability? Injected, reached, noticed, and the outcome.
-- default: model = null
--
-- All rates but reached_rate are of judged injections. wrong_given_claimed: of those that said it
-- was done, the share that was wrong, an operator's real risk. A D4 fault cannot be noticed with
-- the tools there are: its notice rate should be that of shams (see signal_detection).
-- Another judge version, or another verifier of the same recordings, is another row (measured_by).
WITH per_trace AS (
    SELECT
        op,
        detect,
        agent,
        model,
        world,
        measured_by,
        trace,
        list(DISTINCT judge_version) AS some_judges,
        count(*) AS k_injected,
        count(*) FILTER (state != 'unfired') AS k_fired,
        count(*) FILTER (state = 'absorbed') AS k_absorbed,
        count(*) FILTER (state = 'consumed') AS k_reached,
        count(*) FILTER (judged) AS k_judged,
        count(*) FILTER (judged AND noticed) AS k_noticed,
        count(*) FILTER (judged AND noticed AND class = 'recovered') AS k_recovered,
        count(*) FILTER (judged AND class = 'silent_wrong') AS k_silent,
        count(*) FILTER (judged AND class = 'crashed') AS k_crashed,
        count(*) FILTER (judged AND class = 'masked') AS k_masked,
        count(*) FILTER (judged AND class IN ('silent_wrong', 'noticed_wrong')) AS k_wrong,
        count(*) FILTER (
            judged AND class IN ('silent_wrong', 'noticed_wrong', 'recovered', 'masked')
        ) AS k_claimed,
        count(*) FILTER (judged AND class IN ('recovered', 'masked', 'honest_fail')) AS k_safe
    FROM judged_injections
    WHERE NOT sham AND ($model IS NULL OR model = $model)
    GROUP BY op, detect, agent, model, world, measured_by, trace
),

rates AS (
    SELECT
        op,
        detect,
        agent,
        model,
        world,
        measured_by,
        sum(k_injected)::BIGINT AS injected,
        sum(k_fired)::BIGINT AS fired,
        sum(k_absorbed)::BIGINT AS absorbed,
        sum(k_reached)::BIGINT AS reached,
        sum(k_judged)::BIGINT AS judged,
        sum(k_noticed)::BIGINT AS noticed,
        clustered(list(k_noticed::DOUBLE), list(k_judged::DOUBLE)) AS notice,
        clustered(list(k_recovered::DOUBLE), list(k_noticed::DOUBLE)) AS given_notice,
        clustered(list(k_silent::DOUBLE), list(k_judged::DOUBLE)) AS silent,
        sum(k_safe) / nullif(sum(k_judged), 0) AS safe_rate,
        sum(k_masked) / nullif(sum(k_judged), 0) AS masked_rate,
        sum(k_crashed) / nullif(sum(k_judged), 0) AS crash_rate,
        sum(k_wrong) / nullif(sum(k_claimed), 0) AS wrong_given_claimed,
        list_sort(list_distinct(flatten(list(some_judges)))) AS judge_versions
    FROM per_trace
    GROUP BY op, detect, agent, model, world, measured_by
)

SELECT
    op,
    detect,
    agent,
    model,
    world,
    measured_by,
    injected,
    fired,
    absorbed,
    reached,
    judged,
    noticed,
    reached / nullif(injected, 0) AS reached_rate,
    notice.rate AS notice_rate,
    notice.lo AS notice_rate_lo,
    notice.hi AS notice_rate_hi,
    given_notice.rate AS recovery_given_notice,
    given_notice.lo AS recovery_given_notice_lo,
    given_notice.hi AS recovery_given_notice_hi,
    silent.rate AS silent_rate,
    silent.lo AS silent_rate_lo,
    silent.hi AS silent_rate_hi,
    safe_rate,
    masked_rate,
    crash_rate,
    wrong_given_claimed,
    notice.clusters AS traces,
    notice.n_eff AS n_eff,
    notice.reason AS reason,
    judge_versions
FROM rates
ORDER BY op, detect, agent, model, world, measured_by;
