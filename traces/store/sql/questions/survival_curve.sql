-- How many unforced runs have not failed after each step? Kaplan-Meier, clustered by task.
-- default: model = null
--
-- Observed, and a correlation: long runs are of hard tasks. No row goes beyond the longest run.
-- survival is NULL if failures were known only at the end of runs: then it lies between at_least
-- and at_most, and lo and hi hold both with their 95 %. See the view kaplan_meier.
SELECT
    agent,
    model,
    curve,
    step,
    at_risk,
    deaths,
    censored,
    by_budget,
    survival,
    at_least,
    at_most,
    lo,
    hi,
    tasks,
    reason
FROM kaplan_meier
WHERE $model IS NULL OR model = $model
ORDER BY agent, model, curve, step;
