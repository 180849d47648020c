-- How much more often runs end wrong with a fault than their own clean twins without it, per op.
--
-- Estimand: the mean over recordings of the share of runs that end wrong with the fault, less that
-- share of their twins: what the fault brings beside what the agent does anyway. Its interval is
-- that of gained_and_lost over recordings, with its reason where there is none. Runs whose end is not known, or
-- that several faults struck, are left out; one that crashed or was ended by its budget ended wrong.
-- wrong_rate and twins_wrong_rate are means over runs. A fault that changes nothing the model saw,
-- as a short delay, is told from noise by this alone. Shams have a row: the noise itself.
WITH ends AS (
    SELECT
        s.op,
        s.family,
        s.agent,
        s.model,
        s.world,
        s.measured_by,
        s.trace,
        s.injection_id,
        CASE WHEN s.by_budget OR s.class = 'crashed' THEN true ELSE NOT s.passed END AS wrong
    FROM judged_injections AS s
    WHERE s.state != 'unfired' AND NOT s.broken AND NOT s.several_faults
),

controls AS (
    SELECT v.injection_id, unnest(v.twins) AS trajectory_id
    FROM verdicts AS v
),

controlled AS (
    SELECT
        c.injection_id,
        avg(CASE WHEN t.ended IN ('crash', 'budget') THEN 1 ELSE 1 - t.passed::INT END) AS wrong,
        list(c.trajectory_id) FILTER (t.ended IN ('crash', 'budget') OR t.passed IS NOT NULL)
            AS some_twins
    FROM controls AS c
    JOIN trajectories AS t USING (trajectory_id)
    GROUP BY c.injection_id
),

pairs AS (
    SELECT e.*, c.wrong AS twins_wrong, c.some_twins, e.wrong::INT - c.wrong AS difference
    FROM ends AS e
    JOIN controlled AS c USING (injection_id)
    WHERE e.wrong IS NOT NULL AND c.wrong IS NOT NULL
),

per_trace AS (
    SELECT
        op,
        family,
        agent,
        model,
        world,
        measured_by,
        trace,
        count(*) AS k_runs,
        sum(wrong::INT) AS k_wrong,
        sum(twins_wrong) AS k_twins_wrong,
        len(list_distinct(flatten(list(some_twins)))) AS k_twins,
        avg(difference) AS difference
    FROM pairs
    GROUP BY op, family, agent, model, world, measured_by, trace
),

pooled AS (
    SELECT
        op,
        family,
        agent,
        model,
        world,
        measured_by,
        sum(k_runs)::BIGINT AS runs,
        sum(k_wrong) / sum(k_runs) AS wrong_rate,
        sum(k_twins_wrong) / sum(k_runs) AS twins_wrong_rate,
        count(*) AS traces,
        gained_and_lost(
            list(difference ORDER BY trace), list(least(k_runs, k_twins) ORDER BY trace)
        ) AS excess
    FROM per_trace
    GROUP BY op, family, agent, model, world, measured_by
)

SELECT
    op,
    family,
    agent,
    model,
    world,
    measured_by,
    runs,
    traces,
    wrong_rate,
    twins_wrong_rate,
    excess.rate AS excess,
    excess.lo AS excess_lo,
    excess.hi AS excess_hi,
    excess.reason AS excess_reason
FROM pooled;
