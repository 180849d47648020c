-- Is it good enough? Per agent, model and world each rate that `stumble gate` judges, with its bounds.
-- default: confidence = 0.95, by = "all", op = null, model = null, agent = null, scenario = null, campaign = null, budget = "failed"
--
-- by: all pools the operators (their mix moves the rate), op and family keep them apart. Agents,
-- models and worlds are never pooled. lo and hi are the two sides of the interval of `clustered_at`
-- at the confidence that is given; t is how many standard errors they are away. budget: `failed`
-- counts runs that were still going when their budget was up as failures, `censored` leaves them
-- out; by_budget is their number, other_rate the rate if they are counted the other way.
WITH counted AS (
    SELECT
        agent,
        model,
        world,
        trace,
        CASE $by WHEN 'op' THEN op WHEN 'family' THEN family ELSE 'all' END AS part,
        list(DISTINCT op) AS some_ops,
        count(*) FILTER (judged AND NOT (by_budget AND $budget = 'censored')) AS k_judged,
        count(*) FILTER (settled AND NOT (by_budget AND $budget = 'censored')) AS k_settled,
        count(*) FILTER (judged AND NOT (by_budget AND $budget != 'censored')) AS k_judged_other,
        count(*) FILTER (settled AND NOT (by_budget AND $budget != 'censored')) AS k_settled_other,
        count(*) FILTER (judged AND by_budget) AS k_by_budget,
        count(*) FILTER (settled AND by_budget) AS k_settled_by_budget,
        count(*) FILTER (judged AND class = 'recovered') AS k_recovered,
        count(*) FILTER (judged AND class = 'silent_wrong') AS k_silent,
        count(*) FILTER (handled) AS k_handled
    FROM strikes
    WHERE
        NOT sham
        AND ($op IS NULL OR op = $op)
        AND ($model IS NULL OR model = $model)
        AND ($agent IS NULL OR agent = $agent)
        AND ($scenario IS NULL OR scenario = $scenario)
        AND ($campaign IS NULL OR campaign = $campaign)
    GROUP BY ALL
),

rates AS (
    SELECT
        agent,
        model,
        world,
        part,
        list_sort(list_distinct(flatten(list(some_ops)))) AS ops,
        unnest([
            {
                'measure': 'recovery',
                'hits': list(k_recovered),
                'cases': list(k_judged),
                'others': sum(k_judged_other),
                'by_budget': sum(k_by_budget)
            },
            {
                'measure': 'handled',
                'hits': list(k_handled),
                'cases': list(k_settled),
                'others': sum(k_settled_other),
                'by_budget': sum(k_settled_by_budget)
            },
            {
                'measure': 'silent',
                'hits': list(k_silent),
                'cases': list(k_judged),
                'others': sum(k_judged_other),
                'by_budget': sum(k_by_budget)
            }
        ]) AS one
    FROM counted
    GROUP BY agent, model, world, part
),

bounded AS (
    SELECT
        agent,
        model,
        world,
        part,
        ops,
        one.measure AS measure,
        one.by_budget::BIGINT AS by_budget,
        list_sum(one.hits) / nullif(one.others, 0) AS other_rate,
        unnest(clustered_at(one.hits::DOUBLE[], one.cases::DOUBLE[], $confidence))
    FROM rates
)

SELECT
    agent,
    model,
    world,
    part,
    ops,
    measure,
    hits::BIGINT AS hits,
    cases::BIGINT AS cases,
    clusters AS traces,
    n_eff,
    t_ppf((1 + $confidence) / 2, 2 * (clusters - 1)) AS t,
    rate,
    lo,
    hi,
    reason,
    by_budget,
    CASE WHEN by_budget > 0 THEN other_rate END AS other_rate
FROM bounded
ORDER BY agent, model, world, part, measure;
