-- Recovery, silent failure and handled per agent and model, standardised to weights of faults.
--
-- weights is JSON, `{"digit once": 10, ...}`: an operator with its persistence, and what it
-- weighs. A rate is the weighted mean of the faults' rates: each injection counts for its fault's
-- weight over its fault's cases, so that the interval is that of a clustered rate. A fault that has
-- no case leaves no standardised rate: faults says how many have one, of how many.
-- Rates are NULL where what was counted was not measured alike (reason: mixed_judges,
-- mixed_verifiers). _unknown counts the runs whose value is not known, and _least and _most are the
-- rate with all of them against and for, each in its fault (unknown_bounds). campaign selects runs by the beginning of their campaign's name.
-- default: weights = "{}", campaign = ""
WITH declared AS (
    SELECT fault, ($weights::JSON ->> fault)::DOUBLE AS weight
    FROM (SELECT unnest(json_keys($weights::JSON)) AS fault)
),

struck AS (
    SELECT
        s.agent,
        s.model,
        s.world,
        s.trace,
        s.op || ' ' || s.persist AS fault,
        s.measured_by,
        s.state,
        s.class,
        s.judged,
        s.settled,
        s.silent,
        s.handled,
        s.unknown,
        s.unknown.silent OR s.unknown.handled OR s.unknown.recovered AS is_open
    FROM judged_injections AS s
    JOIN trajectories AS t USING (trajectory_id)
    WHERE NOT s.sham AND starts_with(coalesce(t.campaign, ''), $campaign)
),

counted AS (
    SELECT
        agent,
        model,
        world,
        trace,
        fault,
        weight,
        list(DISTINCT measured_by) FILTER (settled) AS some_measures,
        count(*) FILTER (state != 'unfired') AS fired,
        count(*) FILTER (state = 'consumed') AS consumed,
        count(*) FILTER (judged)::DOUBLE AS judged,
        count(silent)::DOUBLE AS silent_of,
        count(handled)::DOUBLE AS handled_of,
        count(*) FILTER (judged AND class = 'recovered')::DOUBLE AS recovered,
        count(*) FILTER (silent)::DOUBLE AS silent,
        count(*) FILTER (handled)::DOUBLE AS handled
    FROM struck
    JOIN declared USING (fault)
    GROUP BY agent, model, world, trace, fault, weight
),

-- What one injection of a fault counts for: together they count as many as there are.
scaled AS (
    SELECT
        *,
        weight / nullif(sum(judged) OVER (PARTITION BY agent, model, world, fault), 0)
            AS by_judged,
        weight / nullif(sum(silent_of) OVER (PARTITION BY agent, model, world, fault), 0)
            AS by_silent,
        weight / nullif(sum(handled_of) OVER (PARTITION BY agent, model, world, fault), 0)
            AS by_handled
    FROM counted
),

per_trace AS (
    SELECT
        agent,
        model,
        world,
        trace,
        list(DISTINCT fault) FILTER (judged > 0) AS some_faults,
        flatten(list(some_measures)) AS some_measures,
        sum(fired)::BIGINT AS fired,
        sum(consumed)::BIGINT AS consumed,
        sum(judged)::BIGINT AS judged,
        sum(silent_of)::BIGINT AS silent_of,
        sum(handled_of)::BIGINT AS handled_of,
        coalesce(sum(by_judged * recovered), 0) AS k_recovered,
        coalesce(sum(by_judged * judged), 0) AS n_judged,
        coalesce(sum(by_silent * silent), 0) AS k_silent,
        coalesce(sum(by_silent * silent_of), 0) AS n_silent,
        coalesce(sum(by_handled * handled), 0) AS k_handled,
        coalesce(sum(by_handled * handled_of), 0) AS n_handled
    FROM scaled
    GROUP BY agent, model, world, trace
),

totals AS (
    SELECT
        *,
        coalesce(sum(judged) OVER whose / nullif(sum(n_judged) OVER whose, 0), 0) AS j,
        coalesce(sum(silent_of) OVER whose / nullif(sum(n_silent) OVER whose, 0), 0) AS s,
        coalesce(sum(handled_of) OVER whose / nullif(sum(n_handled) OVER whose, 0), 0) AS h
    FROM per_trace
    WINDOW whose AS (PARTITION BY agent, model, world)
),

-- Of each fault its bounds, and of these the weighted means.
bounded AS (
    SELECT
        agent,
        model,
        world,
        weighted_bounds(list(weight), list(recovery)) AS recovery_bounds,
        weighted_bounds(list(weight), list(silent)) AS silent_bounds,
        weighted_bounds(list(weight), list(handled)) AS handled_bounds
    FROM (
        SELECT
            agent,
            model,
            world,
            weight,
            unknown_bounds(
                count(*) FILTER (judged AND class = 'recovered'),
                count(*) FILTER (judged),
                count(*) FILTER (NOT judged AND is_open)
            ) AS recovery,
            unknown_bounds(
                count(*) FILTER (silent), count(silent), count(*) FILTER (unknown.silent)
            ) AS silent,
            unknown_bounds(
                count(*) FILTER (handled), count(handled), count(*) FILTER (unknown.handled)
            ) AS handled
        FROM struck
        JOIN declared USING (fault)
        GROUP BY agent, model, world, fault, weight
    )
    GROUP BY agent, model, world
),

pooled AS (
    SELECT
        agent,
        model,
        world,
        count(*) AS traces,
        sum(fired)::BIGINT AS fired,
        sum(consumed)::BIGINT AS consumed,
        sum(judged)::BIGINT AS judged,
        len(list_distinct(flatten(list(some_faults)))) AS faults,
        (SELECT count(*) FROM declared) AS declared_faults,
        mixed(flatten(list(some_measures))) AS not_alike,
        clustered(list(j * k_recovered), list(j * n_judged)) AS recovery,
        clustered(list(s * k_silent), list(s * n_silent)) AS silent,
        clustered(list(h * k_handled), list(h * n_handled)) AS handled
    FROM totals
    GROUP BY agent, model, world
),

told AS (
    SELECT *, faults = declared_faults AND not_alike IS NULL AS has_rates
    FROM pooled
)

SELECT
    told.agent,
    told.model,
    told.world,
    traces,
    fired,
    consumed,
    judged,
    faults,
    declared_faults,
    CASE WHEN has_rates THEN recovery.rate END AS recovery_rate,
    CASE WHEN has_rates THEN recovery.lo END AS recovery_rate_lo,
    CASE WHEN has_rates THEN recovery.hi END AS recovery_rate_hi,
    recovery_bounds.unknown AS recovery_rate_unknown,
    CASE WHEN has_rates THEN recovery_bounds.least END AS recovery_rate_least,
    CASE WHEN has_rates THEN recovery_bounds.most END AS recovery_rate_most,
    CASE WHEN has_rates THEN silent.rate END AS silent_rate,
    CASE WHEN has_rates THEN silent.lo END AS silent_rate_lo,
    CASE WHEN has_rates THEN silent.hi END AS silent_rate_hi,
    silent_bounds.unknown AS silent_rate_unknown,
    CASE WHEN has_rates THEN silent_bounds.least END AS silent_rate_least,
    CASE WHEN has_rates THEN silent_bounds.most END AS silent_rate_most,
    CASE WHEN has_rates THEN handled.rate END AS handled_rate,
    CASE WHEN has_rates THEN handled.lo END AS handled_rate_lo,
    CASE WHEN has_rates THEN handled.hi END AS handled_rate_hi,
    handled_bounds.unknown AS handled_rate_unknown,
    CASE WHEN has_rates THEN handled_bounds.least END AS handled_rate_least,
    CASE WHEN has_rates THEN handled_bounds.most END AS handled_rate_most,
    CASE
        WHEN not_alike IS NOT NULL THEN not_alike
        WHEN faults < declared_faults THEN 'faults_missing'
        ELSE recovery.reason
    END AS reason
FROM told
JOIN bounded
    ON
        told.agent IS NOT DISTINCT FROM bounded.agent
        AND told.model IS NOT DISTINCT FROM bounded.model
        AND told.world IS NOT DISTINCT FROM bounded.world
ORDER BY handled_rate DESC NULLS LAST, told.agent, told.model, told.world;
