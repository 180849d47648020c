-- How long did recovery take? Steps to the first sign, and the cost beyond the clean twins.
--
-- Of recovered injections. steps_to_notice: steps of the agent from the faulted result to the first
-- hard sign that it noticed. extra_steps and extra_seconds: the whole run less the mean of its clean
-- twins; seconds include what the fault itself made the agent wait. Means are over traces.
-- Another judge version, or another verifier of the same recordings, is another row (measured_by).
WITH recovered AS (
    SELECT
        s.agent,
        s.model,
        s.world,
        s.measured_by,
        s.op,
        s.trace,
        s.injection_id,
        s.trajectory_id,
        s.step,
        v.noticed_step,
        v.twins
    FROM judged_injections AS s
    JOIN verdicts AS v USING (injection_id)
    WHERE s.judged AND s.class = 'recovered' AND NOT s.sham
),

noticing AS (
    SELECT
        r.injection_id,
        count(steps.step) AS k_steps
    FROM recovered AS r
    LEFT JOIN steps
        ON
            r.trajectory_id = steps.trajectory_id
            AND steps.source = 'agent'
            AND steps.step > r.step
            AND steps.step <= r.noticed_step
    WHERE r.noticed_step IS NOT NULL AND r.step IS NOT NULL
    GROUP BY r.injection_id
),

controls AS (
    SELECT
        injection_id,
        avg(t.n_steps) AS k_steps,
        avg(t.seconds) AS k_seconds
    FROM (SELECT injection_id, unnest(twins) AS twin FROM recovered) AS pairs
    JOIN trajectories AS t ON pairs.twin = t.trajectory_id
    GROUP BY injection_id
),

measured AS (
    SELECT
        r.*,
        noticing.k_steps AS to_notice,
        t.n_steps - controls.k_steps AS more_steps,
        t.seconds - controls.k_seconds AS more_seconds
    FROM recovered AS r
    JOIN trajectories AS t USING (trajectory_id)
    LEFT JOIN noticing USING (injection_id)
    LEFT JOIN controls USING (injection_id)
),

per_trace AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        op,
        trace,
        count(*) AS k_recovered,
        list(to_notice) FILTER (to_notice IS NOT NULL) AS some_notices,
        list(more_steps) FILTER (more_steps IS NOT NULL) AS some_steps,
        list(more_seconds) FILTER (more_seconds IS NOT NULL) AS some_seconds
    FROM measured
    GROUP BY agent, model, world, measured_by, op, trace
),

pooled AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        op,
        sum(k_recovered)::BIGINT AS recovered,
        flatten(list(some_notices)) AS notices,
        flatten(list(some_steps)) AS steps,
        over_traces(list(list_avg(some_notices)) FILTER (len(some_notices) > 0)) AS notice,
        over_traces(list(list_avg(some_steps)) FILTER (len(some_steps) > 0)) AS extra,
        over_traces(list(list_avg(some_seconds)) FILTER (len(some_seconds) > 0)) AS slower
    FROM per_trace
    GROUP BY agent, model, world, measured_by, op
)

SELECT
    agent,
    model,
    world,
    measured_by,
    op,
    recovered,
    notice.traces AS traces,
    notice.mean AS steps_to_notice,
    notice.lo AS steps_to_notice_lo,
    notice.hi AS steps_to_notice_hi,
    list_median(notices) AS steps_to_notice_median,
    list_max(notices) AS steps_to_notice_max,
    extra.mean AS extra_steps,
    extra.lo AS extra_steps_lo,
    extra.hi AS extra_steps_hi,
    list_median(steps) AS extra_steps_median,
    list_max(steps) AS extra_steps_max,
    slower.mean AS extra_seconds,
    slower.lo AS extra_seconds_lo,
    slower.hi AS extra_seconds_hi,
    notices,
    notice.reason AS reason
FROM pooled
ORDER BY agent, model, world, measured_by, op;
