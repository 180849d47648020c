-- How much do golden artifacts help an agent, stage by stage? Compares the arms of the pipeline.
--
-- Mean scores of whole clean runs of one agent, model, workload and mode: resurrect (golden
-- artifacts after a failed stage), alone (--no-resurrection) and from_golden (every stage is given
-- golden artifacts). gain = resurrect - alone: what resurrection brings. out_of_reach = from_golden
-- - alone: what the agent can do and does not come to, because of its earlier stages. lo and hi are
-- Welch's 95 % interval of gain, reach_lo and reach_hi that of out_of_reach; NULL with fewer than
-- two runs in either arm. The row of stage `all` is of the mean reward (mr).
WITH runs AS (
    SELECT trajectory_id, agent, model, workload, mode, arm, mr
    FROM pipeline_runs
    WHERE condition = 'clean' AND whole AND arm IS NOT NULL
),

scores AS (
    SELECT runs.* EXCLUDE (mr), stages.stage, stages.score
    FROM runs
    JOIN stages USING (trajectory_id)
    UNION ALL
    SELECT * EXCLUDE (mr), 'all' AS stage, mr AS score
    FROM runs
),

arms AS (
    SELECT
        agent,
        model,
        workload,
        mode,
        stage,
        arm,
        count(score) AS n,
        avg(score) AS mean,
        var_samp(score) / nullif(count(score), 0) AS squared_error
    FROM scores
    GROUP BY agent, model, workload, mode, stage, arm
),

side_by_side AS (
    SELECT
        agent,
        model,
        workload,
        mode,
        stage,
        max(arms) FILTER (arm = 'resurrect') AS aided,
        max(arms) FILTER (arm = 'no-resurrection') AS alone,
        max(arms) FILTER (arm = 'from-golden') AS golden
    FROM arms
    GROUP BY agent, model, workload, mode, stage
),

apart AS (
    SELECT
        *,
        [
            {
                'gap': more.mean - alone.mean,
                'spread': sqrt(more.squared_error + alone.squared_error),
                'df': (more.squared_error + alone.squared_error) ^ 2 / nullif(
                    more.squared_error ^ 2 / (more.n - 1) + alone.squared_error ^ 2 / (alone.n - 1),
                    0
                )
            } FOR more IN [aided, golden]
        ] AS gaps
    FROM side_by_side
)

SELECT
    agent,
    model,
    workload,
    mode,
    stage,
    coalesce(aided.n, 0) AS runs_resurrect,
    coalesce(alone.n, 0) AS runs_alone,
    coalesce(golden.n, 0) AS runs_from_golden,
    aided.mean AS resurrect,
    alone.mean AS alone,
    golden.mean AS from_golden,
    gaps[1].gap AS gain,
    gaps[1].gap - t_ppf(0.975, gaps[1].df) * gaps[1].spread AS lo,
    gaps[1].gap + t_ppf(0.975, gaps[1].df) * gaps[1].spread AS hi,
    gaps[2].gap AS out_of_reach,
    gaps[2].gap - t_ppf(0.975, gaps[2].df) * gaps[2].spread AS reach_lo,
    gaps[2].gap + t_ppf(0.975, gaps[2].df) * gaps[2].spread AS reach_hi
FROM apart
ORDER BY agent, model, workload, mode, stage = 'all', stage;
