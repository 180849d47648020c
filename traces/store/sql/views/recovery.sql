-- Effects of faults per op, agent, model and world: recovery, silent failure, handled, with intervals.
--
-- Two estimands. Agent: of the faults it consumed whose baseline is valid and whose outcome is
-- known (judged), silent_rate; of those that could be noticed recovery_rate; of those that were
-- noticed recovery_given_notice. System: of all that fired and whose outcome is known (settled =
-- judged + absorbed + ended_before), ends_right_rate = absorbed, recovered or masked, and
-- handled_rate = those and honest failures. If nothing was excluded, judged is consumed and settled
-- is fired. Each rate has its interval by clustered, and a reason (conservative, few_traces, ...);
-- lo, hi and reason are those of recovery_rate. Not for a comparison of agents that were struck by
-- different mixes of faults (standardised), nor for what happens in the wild (survival).
-- several_faults of the excluded: what came of a run that several faults struck is charged to none
-- of them (see the question fault_sets). by_budget of the crashed: runs that were still going when
-- their budget was up.
-- excess: how much more often runs end wrong than their own clean twins (see the view excess).
-- Places, persistence and detectability are pooled and listed; recovery_by_site keeps them apart.
-- Another judge version is another row, and so is another verifier of the same recordings (see
-- measured_by in strikes); verifiers of different recordings are pooled and listed.
SELECT
    r.op,
    r.family,
    r.agent,
    r.model,
    r.world,
    r.measured_by,
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
    given_notice.rate AS recovery_given_notice,
    given_notice.lo AS recovery_given_notice_lo,
    given_notice.hi AS recovery_given_notice_hi,
    given_notice.reason AS recovery_given_notice_reason,
    silent.rate AS silent_rate,
    silent.lo AS silent_rate_lo,
    silent.hi AS silent_rate_hi,
    silent.reason AS silent_rate_reason,
    handled.rate AS handled_rate,
    handled.lo AS handled_rate_lo,
    handled.hi AS handled_rate_hi,
    handled.reason AS handled_rate_reason,
    ends_right.rate AS ends_right_rate,
    ends_right.lo AS ends_right_rate_lo,
    ends_right.hi AS ends_right_rate_hi,
    ends_right.reason AS ends_right_rate_reason,
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
    verifiers,
    e.wrong_rate,
    e.twins_wrong_rate,
    e.excess,
    e.excess_lo,
    e.excess_hi,
    e.excess_reason
FROM injection_rates AS r
LEFT JOIN excess AS e
    ON
        r.op IS NOT DISTINCT FROM e.op
        AND r.family IS NOT DISTINCT FROM e.family
        AND r.agent IS NOT DISTINCT FROM e.agent
        AND r.model IS NOT DISTINCT FROM e.model
        AND r.world IS NOT DISTINCT FROM e.world
        AND r.measured_by IS NOT DISTINCT FROM e.measured_by
WHERE r.counted_by = 'op';
