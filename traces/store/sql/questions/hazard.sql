-- Is the failure probability equal at every step? Hazard of unforced runs by step, with a test.
-- default: model = null
--
-- Chi-squared over bins of steps, each with its exposure; the bins are those that were reached. The
-- test needs some five deaths expected in each bin (few_deaths says where there are not). A failure
-- without a crash is counted in the last step of its run, though it may have come at any: p is NULL
-- if there are such (undated counts them), and the bins show when runs ended. A hazard that falls is
-- not an agent that warms up: weak tasks die first. These are correlations.
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
        count(*) FILTER (died AND n_steps <= coalesce(last_step, n_steps))::DOUBLE AS k_deaths,
        count(*) FILTER (
            died AND ending != 'crashed' AND n_steps <= coalesce(last_step, n_steps)
        ) AS k_undated
    FROM clean_runs
    JOIN bins ON clean_runs.n_steps >= bins.first_step
    WHERE died IS NOT NULL AND ($model IS NULL OR model = $model)
    GROUP BY agent, model, bin, first_step, last_step
),

pooled AS (
    SELECT
        *,
        sum(k_deaths) OVER whole / sum(k_steps) OVER whole AS h,
        sum(k_undated) OVER whole::BIGINT AS undated,
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
    CASE WHEN freedom > 0 AND undated = 0 THEN chi2_sf(x2, freedom) END AS p,
    undated,
    CASE
        WHEN h = 0 THEN 'no_deaths'
        WHEN h = 1 THEN 'nobody_lived'
        WHEN freedom = 0 THEN 'one_bin'
        WHEN undated > 0 THEN 'interval_censored'
        WHEN least_expected < 5 THEN 'few_deaths'
    END AS reason
FROM tested
ORDER BY agent, model, bin;
