-- How long does a run last? Probability per step not to fail, half-life and p^n, from unforced runs.
--
-- Estimand: the chance to pass a step without failing, if it is the same for all steps and tasks.
-- Formula: p = 1 - deaths / steps, clustered by task. Of a failure without a crash nobody knows the
-- step: p counts all steps of its run, and p_lo, the lower end of the interval, only the first.
-- Runs that nobody graded are no evidence, and counted in ungraded. budget, two rows each: `failed`
-- counts runs that their budget ended as failures, `censored` as alive until then; other_p is the
-- figure of the other way. bound says for which n p_n is one, if tasks or steps differ: at_most up to the mean
-- length of a run, at_least from the longest on, unless some failures have no date. hazard tests it,
-- kaplan_meier is what was observed. Not beyond the longest run without saying so.
WITH counted AS (
    SELECT
        *,
        died AND NOT (ending = 'budget' AND budget = 'censored') AS dies,
        died AND NOT (ending = 'budget' AND budget = 'failed') AS dies_otherwise
    FROM clean_runs
    CROSS JOIN (VALUES ('failed'), ('censored')) AS budgets (budget)
),

per_task AS (
    SELECT
        agent,
        model,
        budget,
        cluster,
        count(*) FILTER (died IS NULL) AS k_ungraded,
        count(died)::DOUBLE AS k_runs,
        count(*) FILTER (ending = 'budget') AS k_budget,
        max(n_steps) FILTER (died IS NOT NULL) AS longest,
        count(*) FILTER (dies AND ending != 'crashed') AS k_undated,
        count(*) FILTER (dies)::DOUBLE AS k_deaths,
        count(*) FILTER (dies_otherwise)::DOUBLE AS k_other_deaths,
        coalesce(sum(n_steps) FILTER (died IS NOT NULL), 0)::DOUBLE AS k_steps,
        coalesce(
            sum(CASE WHEN dies AND ending != 'crashed' THEN 1 ELSE n_steps END)
                FILTER (died IS NOT NULL),
            0
        )::DOUBLE AS k_sure_steps
    FROM counted
    GROUP BY agent, model, budget, cluster
),

per_agent AS (
    SELECT
        agent,
        model,
        budget,
        sum(k_runs)::BIGINT AS runs,
        sum(k_ungraded)::BIGINT AS ungraded,
        sum(k_budget)::BIGINT AS by_budget,
        max(longest) AS longest,
        sum(k_steps) / nullif(sum(k_runs), 0) AS mean_steps,
        sum(k_undated)::BIGINT AS undated,
        1 - sum(k_other_deaths) / nullif(sum(k_steps), 0) AS other_p,
        hazards_over(
            list(k_deaths), list(k_steps), list(k_sure_steps), list(k_runs), max(longest)
        ) AS dated
    FROM per_task
    GROUP BY agent, model, budget
),

fitted AS (
    SELECT
        * EXCLUDE (dated),
        dated.late AS late,
        dated.early AS early
    FROM per_agent
),

bounded AS (
    SELECT
        *,
        late.clusters AS tasks,
        late.hits::BIGINT AS deaths,
        late.cases::BIGINT AS steps,
        1 - late.rate AS p,
        1 - early.hi AS p_lo,
        1 - late.lo AS p_hi
    FROM fitted
)

SELECT
    agent,
    model,
    budget,
    runs,
    tasks,
    deaths,
    steps,
    p,
    p_lo,
    p_hi,
    half_life(p) AS half_life,
    half_life(p_lo) AS half_life_lo,
    half_life(p_hi) AS half_life_hi,
    p ** 20 AS p_20,
    p_lo ** 20 AS p_20_lo,
    p_hi ** 20 AS p_20_hi,
    constant_bound(20, mean_steps, longest, undated) AS bound,
    undated,
    ungraded,
    by_budget,
    CASE WHEN by_budget > 0 THEN other_p END AS other_p,
    CASE
        WHEN runs = 0 THEN 'ungraded'
        WHEN deaths = 0 THEN 'no_deaths'
        WHEN p_lo IS NULL THEN coalesce(nullif(late.reason, 'conservative'), early.reason)
        ELSE late.reason
    END AS reason
FROM bounded;
