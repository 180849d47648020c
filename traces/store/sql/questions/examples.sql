-- Which injections are worth a look? Some of each model, operator and outcome, worst first.
-- default: n = 200
WITH ranked AS (
    SELECT
        s.*,
        v.evidence,
        v.twins,
        v.noticed_step,
        v.first_use_step,
        t.task,
        coalesce(
            list_position(
                ['silent_wrong', 'noticed_wrong', 'crashed', 'honest_fail', 'masked', 'recovered'],
                s.class
            ),
            7
        ) AS severity,
        row_number() OVER (
            PARTITION BY s.agent, s.model, s.op, s.class
            ORDER BY s.persist, s.trajectory_id, s.injection_id
        ) AS nth
    FROM judged_injections AS s
    JOIN trajectories AS t USING (trajectory_id)
    LEFT JOIN verdicts AS v USING (injection_id)
    WHERE NOT s.sham AND s.state != 'unfired'
),

chosen AS (
    SELECT *
    FROM ranked
    ORDER BY nth, severity, injection_id
    LIMIT $n
)

SELECT
    injection_id,
    trajectory_id,
    agent,
    model,
    world,
    trace,
    task,
    op,
    params,
    tool,
    step,
    place,
    persist,
    detect,
    state,
    unreached_reason,
    class,
    noticed,
    passed,
    claims_success,
    baseline_valid,
    noticed_step,
    first_use_step,
    judge_version,
    original,
    mutated,
    evidence,
    twins
FROM chosen
ORDER BY severity, model, op, persist, trajectory_id, injection_id;
