-- Effects of faults per op, agent, model and world: recovery, silent failure, handled, with intervals.
--
-- Two estimands. Agent: of the faults it consumed whose baseline is valid, silent_rate; of those that
-- could be noticed recovery_rate; of those that were noticed recovery_given_notice. System: of all
-- that fired, ends_right_rate (the verified end alone) and handled_rate = ends right and reported so,
-- or honest failure. A rate counts each run that is known for it (see judged_injections): _of of
-- them; _unknown of others are not, and _least and _most are the rate with all of these against and
-- for. Each has its interval by clustered, and a reason (conservative, few_traces, ...); lo, hi and
-- reason are those of recovery_rate. If the bounds are wider than the interval, they are the result.
-- delivered_wrong: noticed_wrong, silent_wrong, and those with an unknown notice. Not for a
-- comparison of agents that were struck by different mixes of faults (standardised), nor for what
-- happens in the wild (survival).
-- several_faults of the excluded: what came of a run that several faults struck is charged to none
-- of them (see the question fault_sets). by_budget of the crashed: runs that were still going when
-- their budget was up.
-- excess: how much more often runs end wrong than their own clean twins (see the view excess).
-- Places, persistence and detectability are pooled and listed; recovery_by_site keeps them apart.
-- Another judge version is another row, and so is another verifier of the same recordings (see
-- measured_by in judged_injections); verifiers of different recordings are pooled and listed.
SELECT
    r.* EXCLUDE (counted_by, place, persist, detect),
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
