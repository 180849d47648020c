-- What do 3, 10, 20, 50, 100 steps imply? The popular table, next to the observed figures.
-- default: model = null
--
-- implied: the popular figure, 1 - errors / calls of all runs together; ^n is implied^n. It differs
-- from sound, (1 - deaths / steps)^n, since it takes every error for fatal and sees no silent
-- failure. Both take one hazard for all steps and tasks; kaplan_meier does not, and is NULL beyond the last
-- observed step, and if failures were known only at the end of runs: it lies between kaplan_meier_at_least and
-- kaplan_meier_at_most. Runs that nobody graded are in none of the two. typical: the median run's own implied
-- figure, low and high its quartiles.
WITH seeds AS (
    SELECT
        agent,
        model,
        condition,
        count(*) FILTER (trajectory_length > 0) AS runs,
        1 - sum(errors) / nullif(sum(trajectory_length), 0) AS implied,
        quantile_cont(implied_step_success_rate, 0.25) AS low,
        quantile_cont(implied_step_success_rate, 0.5) AS typical,
        quantile_cont(implied_step_success_rate, 0.75) AS high
    FROM telemetry
    WHERE condition = 'clean' AND ($model IS NULL OR model = $model)
    GROUP BY agent, model, condition
),

sound AS (
    SELECT
        agent,
        model,
        1 - count(*) FILTER (died) / sum(n_steps) AS p
    FROM clean_runs
    WHERE died IS NOT NULL
    GROUP BY agent, model
),

observed AS (
    SELECT agent, model, step, survival, at_least, at_most
    FROM kaplan_meier
    WHERE curve = 'ends_right'
)

SELECT
    seeds.agent,
    seeds.model,
    ns.n,
    seeds.runs,
    seeds.implied,
    seeds.implied ** ns.n AS implied_n,
    seeds.low,
    seeds.typical,
    seeds.high,
    half_life(seeds.implied) AS implied_half_life,
    sound.p AS sound,
    sound.p ** ns.n AS sound_n,
    half_life(sound.p) AS half_life,
    observed.survival AS kaplan_meier,
    observed.at_least AS kaplan_meier_at_least,
    observed.at_most AS kaplan_meier_at_most,
    CASE
        WHEN seeds.implied IS NULL THEN 'no_calls_that_say'
        WHEN sound.p IS NULL THEN 'no_clean_runs'
    END AS reason
FROM seeds
CROSS JOIN (SELECT unnest([3, 10, 20, 50, 100]) AS n) AS ns
LEFT JOIN sound
    ON
        seeds.agent IS NOT DISTINCT FROM sound.agent
        AND seeds.model IS NOT DISTINCT FROM sound.model
LEFT JOIN observed
    ON
        ns.n = observed.step
        AND seeds.agent IS NOT DISTINCT FROM observed.agent
        AND seeds.model IS NOT DISTINCT FROM observed.model
ORDER BY seeds.agent, seeds.model, ns.n;
