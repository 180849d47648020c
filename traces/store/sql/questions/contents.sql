-- What is in the store? Runs by model, source, condition and ending.
SELECT
    agent,
    model,
    world,
    source,
    condition,
    ended,
    count(*) AS runs,
    count(*) FILTER (passed) AS passed,
    count(*) FILTER (passed IS NULL) AS unknown,
    min(recorded_at) AS first_at,
    max(recorded_at) AS last_at
FROM trajectories
GROUP BY agent, model, world, source, condition, ended
ORDER BY agent, model, world, source, condition, ended;
