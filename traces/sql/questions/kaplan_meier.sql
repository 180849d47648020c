-- How many unforced runs are still good after each step? Kaplan-Meier, with a log-log interval.
-- default: model = null
--
-- Observed, and a correlation: long runs are of hard tasks. No row goes beyond the longest run.
SELECT
    agent,
    model,
    step,
    at_risk,
    deaths,
    censored,
    survival,
    lo,
    hi
FROM km
WHERE $model IS NULL OR model = $model
ORDER BY agent, model, step;
