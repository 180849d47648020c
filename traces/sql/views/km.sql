-- Kaplan-Meier over unforced runs, per agent and model: the share not yet failed after each step.
--
-- Observed, not extrapolated: there is no row beyond the last step of the longest run. The
-- interval is log-log (Greenwood), NULL while nothing or everything failed. Tasks are pooled, and
-- weak ones fail first: a falling hazard here does not mean that an agent warms up.
WITH at_step AS (
    SELECT
        agent,
        model,
        n_steps AS step,
        count(*) AS leaving,
        count(*) FILTER (died) AS deaths
    FROM lives
    GROUP BY agent, model, n_steps
),

at_risk AS (
    SELECT
        *,
        sum(leaving) OVER (
            PARTITION BY agent, model ORDER BY step
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        )::BIGINT AS at_risk
    FROM at_step
),

curve AS (
    SELECT
        *,
        product(1 - deaths / at_risk) OVER so_far AS survival,
        sum(deaths / nullif(at_risk * (at_risk - deaths)::DOUBLE, 0)) OVER so_far AS greenwood
    FROM at_risk
    WINDOW so_far AS (PARTITION BY agent, model ORDER BY step)
)

SELECT
    agent,
    model,
    step,
    at_risk,
    deaths,
    leaving - deaths AS censored,
    survival,
    CASE
        WHEN survival > 0 AND survival < 1
            THEN survival ** exp(1.959963984540054 * sqrt(greenwood) / -ln(survival))
    END AS lo,
    CASE
        WHEN survival > 0 AND survival < 1
            THEN survival ** exp(-1.959963984540054 * sqrt(greenwood) / -ln(survival))
    END AS hi
FROM curve;
