-- How soon is a wrong value used? Share of judged injections with a first tainted use within n steps.
-- default: model = null, op = null
--
-- Estimand: the share of judged injections whose wrong value is used within n steps. Aalen and
-- Johansen's cumulative incidence, in which all other ends compete: a run that ended right, crashed
-- or gave up will not use it any more. As each judged run has one of these ends nothing is censored,
-- so that it is the plain share so far, and its last row the share of silent_wrong and noticed_wrong
-- together. Not for how long a lie stays in use, nor for runs that nobody judged.
-- n counts steps of the agent after the struck one. If the first use of a silent failure is not
-- known the whole curve is NULL (first_use_unknown counts them): putting it at the end of the run
-- would flatter. What was struck outside of a tool call has no step to count from (steps_unknown):
-- op selects what has.
-- Another judge version, or another verifier of the same recordings, is another row (measured_by).
WITH agent_steps AS (
    SELECT trajectory_id, list_sort(list(step)) AS at
    FROM steps
    WHERE source = 'agent'
    GROUP BY trajectory_id
),

fates AS (
    SELECT
        s.agent,
        s.model,
        s.world,
        s.measured_by,
        s.class IN ('silent_wrong', 'noticed_wrong') AS used,
        used AND o.first_use_step IS NULL AS unseen,
        s.class = 'crashed' AS crashed,
        s.class = 'honest_fail' AS gave_up,
        CASE
            WHEN s.step IS NULL THEN NULL
            WHEN s.class NOT IN ('silent_wrong', 'noticed_wrong')
                THEN len(list_filter(a.at, lambda one: one > s.step))
            WHEN o.first_use_step IS NOT NULL
                THEN len(list_filter(a.at, lambda one: one > s.step AND one <= o.first_use_step))
        END AS n
    FROM judged_injections AS s
    LEFT JOIN agent_steps AS a USING (trajectory_id)
    LEFT JOIN outcomes AS o
        ON s.injection_id = o.injection_id AND s.judge_version IS NOT DISTINCT FROM o.judge_version
    WHERE
        s.judged
        AND NOT s.sham
        AND ($model IS NULL OR s.model = $model)
        AND ($op IS NULL OR s.op = $op)
),

placed AS (
    SELECT
        *,
        greatest(n, 1) AS t,
        count(*) OVER whole AS injections,
        count(*) FILTER (unseen) OVER whole AS first_use_unknown,
        count(*) FILTER (n IS NULL) OVER whole AS unknown
    FROM fates
    WINDOW whole AS (PARTITION BY agent, model, world, measured_by)
),

at_step AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        injections,
        first_use_unknown,
        unknown,
        t,
        count(*) AS leaving,
        count(*) FILTER (used) AS k_used,
        count(*) FILTER (crashed) AS k_crashed,
        count(*) FILTER (gave_up) AS k_gave_up
    FROM placed
    WHERE t IS NOT NULL OR unknown = injections
    GROUP BY agent, model, world, measured_by, injections, first_use_unknown, unknown, t
)

SELECT
    agent,
    model,
    world,
    measured_by,
    t::BIGINT AS n,
    (sum(leaving) OVER (so_far ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING))::BIGINT
        AS at_risk,
    k_used AS used,
    k_crashed AS crashed,
    k_gave_up AS honest_failures,
    leaving - k_used - k_crashed - k_gave_up AS ended_right,
    CASE WHEN unknown = 0 THEN sum(k_used) OVER so_far / injections END AS silent_by_n,
    CASE WHEN unknown = 0 THEN sum(k_crashed) OVER so_far / injections END AS crashed_by_n,
    CASE WHEN unknown = 0 THEN sum(k_gave_up) OVER so_far / injections END AS honest_by_n,
    injections,
    first_use_unknown,
    CASE
        WHEN first_use_unknown > 0 THEN 'first_use_unknown'
        WHEN unknown > 0 THEN 'steps_unknown'
    END AS reason
FROM at_step
WINDOW so_far AS (PARTITION BY agent, model, world, measured_by ORDER BY t)
ORDER BY agent, model, world, measured_by, n;
