-- What would n steps come to? A constant hazard beside the naive figure, with the longest run.
-- default: n = 50
-- range: n = 1..100000
--
-- implied: p^n, p as in the question half_life (the chance to pass a step, clustered by task); lo and
-- hi take the ends of its interval. naive: the pass rate to the power n / mean steps. beyond: n is more
-- than the longest run, so that both are extrapolations. The question hazard tests whether the hazard
-- is constant; where it rises, implied is too high for long runs.
WITH per_task AS (
    SELECT
        agent,
        model,
        task,
        count(died)::DOUBLE AS k_runs,
        count(*) FILTER (NOT died) AS k_passed,
        max(n_steps) AS longest,
        count(*) FILTER (died)::DOUBLE AS k_deaths,
        sum(n_steps)::DOUBLE AS k_steps,
        sum(CASE WHEN died AND ending != 'crashed' THEN 1 ELSE n_steps END)::DOUBLE AS k_sure_steps
    FROM clean_runs
    WHERE died IS NOT NULL
    GROUP BY agent, model, task
),

per_agent AS (
    SELECT
        agent,
        model,
        sum(k_runs)::BIGINT AS runs,
        max(longest) AS longest,
        sum(k_steps) / sum(k_runs) AS mean_steps,
        sum(k_passed) / sum(k_runs) AS pass_rate,
        hazards_over(
            list(k_deaths), list(k_steps), list(k_sure_steps), list(k_runs), max(longest)
        ) AS dated
    FROM per_task
    GROUP BY agent, model
),

fitted AS (
    SELECT
        * EXCLUDE (dated),
        dated.late AS late,
        dated.early AS early
    FROM per_agent
)

SELECT
    agent,
    model,
    runs,
    mean_steps,
    longest,
    $n::BIGINT AS n,
    pow(1 - late.rate, $n) AS implied,
    pow(1 - early.hi, $n) AS lo,
    pow(1 - late.lo, $n) AS hi,
    pow(pass_rate, $n / mean_steps) AS naive,
    $n > longest AS beyond,
    late.reason AS reason
FROM fitted
ORDER BY implied DESC NULLS LAST, agent, model;
