-- Is the chance to fail the same at every step? Hazard of unforced runs by step, and the test of it.
-- default: model = null
--
-- Chi-squared over bins of steps, each with its exposure; the bins are those that were reached. The
-- test needs some five deaths expected in each bin (few_deaths says where there are not). A hazard
-- that falls is not an agent that warms up: weak tasks die first. These are correlations.
WITH bins AS (
    SELECT * FROM (
        VALUES (1, 1, 3), (2, 4, 6), (3, 7, 10), (4, 11, 15), (5, 16, 25), (6, 26, 50), (7, 51, NULL)
    ) AS listed (bin, first_step, last_step)
),

walked AS (
    SELECT
        agent,
        model,
        bin,
        first_step,
        last_step,
        sum(least(n_steps, coalesce(last_step, n_steps)) - first_step + 1)::DOUBLE AS k_steps,
        count(*) FILTER (died AND n_steps <= coalesce(last_step, n_steps))::DOUBLE AS k_deaths
    FROM lives
    JOIN bins ON lives.n_steps >= bins.first_step
    WHERE $model IS NULL OR model = $model
    GROUP BY agent, model, bin, first_step, last_step
),

pooled AS (
    SELECT
        *,
        sum(k_deaths) OVER whole / sum(k_steps) OVER whole AS h,
        count(*) OVER whole - 1 AS freedom
    FROM walked
    WINDOW whole AS (PARTITION BY agent, model)
),

tested AS (
    SELECT
        *,
        sum(
            CASE WHEN h > 0 AND h < 1 THEN (k_deaths - k_steps * h) ** 2 / (k_steps * h * (1 - h)) END
        ) OVER whole AS x2,
        min(k_steps * least(h, 1 - h)) OVER whole AS least_expected
    FROM pooled
    WINDOW whole AS (PARTITION BY agent, model)
)

SELECT
    agent,
    model,
    first_step,
    last_step,
    k_steps::BIGINT AS steps,
    k_deaths::BIGINT AS deaths,
    k_deaths / k_steps AS hazard,
    wilson_lo(k_deaths, k_steps, 1.959963984540054) AS lo,
    wilson_hi(k_deaths, k_steps, 1.959963984540054) AS hi,
    h AS pooled_hazard,
    CASE WHEN freedom > 0 THEN x2 END AS chi2,
    freedom AS df,
    CASE WHEN freedom > 0 THEN chi2_sf(x2, freedom) END AS p,
    CASE
        WHEN h = 0 THEN 'no_deaths'
        WHEN h = 1 THEN 'nobody_lived'
        WHEN freedom = 0 THEN 'one_bin'
        WHEN least_expected < 5 THEN 'few_deaths'
    END AS reason
FROM tested
ORDER BY agent, model, bin;
