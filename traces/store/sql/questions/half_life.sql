-- How long does a run last? Probability per step not to fail, half-life and p^n, from unforced runs.
-- default: model = null, budget = "failed"
--
-- The view half_life, which says what is counted: with its rows of one budget.
SELECT * EXCLUDE (budget)
FROM half_life
WHERE
    budget = CASE WHEN $budget = 'censored' THEN 'censored' ELSE 'failed' END
    AND ($model IS NULL OR model = $model)
ORDER BY agent, model;
