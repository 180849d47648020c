-- As recovery, with place, persistence and detectability of the fault kept apart.
SELECT
    op,
    family,
    agent,
    model,
    world,
    place,
    persist,
    detect,
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
    given_notice.rate AS recovery_given_notice,
    given_notice.lo AS recovery_given_notice_lo,
    given_notice.hi AS recovery_given_notice_hi,
    silent.rate AS silent_rate,
    silent.lo AS silent_rate_lo,
    silent.hi AS silent_rate_hi,
    handled.rate AS handled_rate,
    handled.lo AS handled_rate_lo,
    handled.hi AS handled_rate_hi,
    CASE
        WHEN consumed = 0 THEN 'nothing_consumed'
        WHEN judged = 0 THEN 'nothing_judged'
        ELSE recovery.reason
    END AS reason,
    noticed,
    recovered,
    masked,
    honest_fail,
    noticed_wrong,
    silent_wrong,
    crashed,
    ended_before,
    undecided,
    excluded,
    settled,
    scenarios
FROM strike_rates
WHERE counted_by = 'site';
