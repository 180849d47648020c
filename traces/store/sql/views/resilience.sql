-- Effects of faults per agent, model and world, all operators pooled, with intervals.
--
-- The rates of recovery_by_model, and what a run of 20 and of 50 steps has of them: the chance to
-- end right if tools fail loudly in 2 % of steps, and never lie (survival). Compare only like
-- mixes of faults; recovery keeps operators apart. Another judge version, or another verifier of the
-- same recordings, is another row (measured_by).
WITH per_trace AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        trace,
        count(*) FILTER (judged)::DOUBLE AS k_judged,
        count(*) FILTER (noticeable)::DOUBLE AS k_noticeable,
        count(*) FILTER (recovered)::DOUBLE AS k_recovered,
        count(*) FILTER (silent)::DOUBLE AS k_silent,
        count(silent)::DOUBLE AS k_silent_of,
        count(*) FILTER (unknown.recovered) AS k_unknown_recovered,
        count(*) FILTER (unknown.silent) AS k_unknown_silent,
        count(*) FILTER (settled) AS k_settled,
        count(*) FILTER (state != 'unfired') AS k_fired
    FROM judged_injections
    WHERE NOT sham
    GROUP BY agent, model, world, measured_by, trace
),

pooled AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        sum(k_fired)::BIGINT AS fired,
        sum(k_judged)::BIGINT AS judged,
        sum(k_settled)::BIGINT AS settled,
        clustered(list(k_recovered), list(k_noticeable)) AS recovery,
        clustered(list(k_silent), list(k_silent_of)) AS silent,
        unknown_bounds(sum(k_recovered), sum(k_noticeable), sum(k_unknown_recovered))
            AS recovery_bounds,
        unknown_bounds(sum(k_silent), sum(k_silent_of), sum(k_unknown_silent)) AS silent_bounds
    FROM per_trace
    GROUP BY agent, model, world, measured_by
    HAVING sum(k_fired) > 0
),

lasting AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        max({'rate': survival, 'lo': lo, 'hi': hi, 'reason': reason}) FILTER (n = 20) AS survival_20,
        max({'rate': survival, 'lo': lo, 'hi': hi, 'reason': reason}) FILTER (n = 50) AS survival_50
    FROM survival
    WHERE
        basis = 'model'
        AND curve = 'ends_right'
        AND class = 'loud'
        AND e_from = 'assumed'
        AND e = 0.02
    GROUP BY agent, model, world, measured_by
)

SELECT
    pooled.agent,
    pooled.model,
    pooled.world,
    pooled.measured_by,
    concat_ws(' in ', pooled.agent, pooled.world) AS measured_in,
    fired,
    judged,
    settled,
    recovery.rate AS recovery_rate,
    recovery.lo AS recovery_rate_lo,
    recovery.hi AS recovery_rate_hi,
    recovery.reason AS recovery_rate_reason,
    recovery_bounds.of AS recovery_rate_of,
    recovery_bounds.unknown AS recovery_rate_unknown,
    recovery_bounds.least AS recovery_rate_least,
    recovery_bounds.most AS recovery_rate_most,
    silent.rate AS silent_rate,
    silent.lo AS silent_rate_lo,
    silent.hi AS silent_rate_hi,
    silent.reason AS silent_rate_reason,
    silent_bounds.of AS silent_rate_of,
    silent_bounds.unknown AS silent_rate_unknown,
    silent_bounds.least AS silent_rate_least,
    silent_bounds.most AS silent_rate_most,
    survival_20.rate AS survival_20,
    survival_20.lo AS survival_20_lo,
    survival_20.hi AS survival_20_hi,
    survival_20.reason AS survival_20_reason,
    survival_50.rate AS survival_50,
    survival_50.lo AS survival_50_lo,
    survival_50.hi AS survival_50_hi,
    survival_50.reason AS survival_50_reason
FROM pooled
LEFT JOIN lasting
    ON
        pooled.agent IS NOT DISTINCT FROM lasting.agent
        AND pooled.model IS NOT DISTINCT FROM lasting.model
        AND pooled.world IS NOT DISTINCT FROM lasting.world
        AND pooled.measured_by IS NOT DISTINCT FROM lasting.measured_by;
