-- What does "it never happened" exclude? Upper bounds of silent failures and crashes not yet seen.
-- default: model = null, confidence = 0.95
-- range: confidence = 0..1
--
-- 1 - (1 - confidence)^(1 / n), one-sided. by_injection takes all injections for independent,
-- by_trace counts each trace as one case, which holds however alike its injections are: publish
-- that one.
-- Another judge version, or another verifier of the same recordings, is another row (measured_by).
WITH counted AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        op,
        count(*) AS judged,
        count(DISTINCT trace) AS traces,
        count(*) FILTER (class = 'silent_wrong') AS silent_wrong,
        count(*) FILTER (class = 'crashed') AS crashed
    FROM judged_injections
    WHERE judged AND NOT sham AND ($model IS NULL OR model = $model)
    GROUP BY agent, model, world, measured_by, op
),

unseen AS (
    UNPIVOT counted
    ON silent_wrong, crashed
    INTO NAME event VALUE events
)

SELECT
    agent,
    model,
    world,
    measured_by,
    op,
    event,
    judged,
    traces,
    none_in_at(judged, $confidence::DOUBLE) AS by_injection,
    none_in_at(traces, $confidence::DOUBLE) AS by_trace
FROM unseen
WHERE events = 0
ORDER BY agent, model, world, measured_by, op, event;
