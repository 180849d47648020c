-- How does a candidate compare with a baseline, root by root? For stumble gate --against.
-- default: campaign = null, agent = null, model = null, world = null, baseline_campaign = null, baseline_agent = null, baseline_model = null, baseline_world = null, measure = "ends-right"
--
-- One row for each root recording. paired_by: root where both arms forked the same recordings, task
-- where they have tasks in common, NULL where they share neither and have rows of their own. Of a
-- pair only the cells that both have count, and both known; left_out counts those that one arm lacks.
-- In two recordings of a task a fault is drawn to a call of each, so there a cell is what was planned:
-- fault, seed and repetition.
-- candidate, baseline and difference are shares of what is wanted (see arm_cells); worst and best
-- are the difference if all that is unknown were a failure of the candidate and a success of the
-- baseline, and the reverse. Hold them together with paired_bounds and unpaired_bounds.
WITH candidate_cells AS (
    FROM arm_cells($campaign, $agent, $model, $world, $measure)
),

baseline_cells AS (
    FROM arm_cells(
        $baseline_campaign, $baseline_agent, $baseline_model, $baseline_world, $measure
    )
),

pairing AS (
    SELECT
        CASE
            WHEN EXISTS (SELECT 1 FROM candidate_cells SEMI JOIN baseline_cells USING (root))
                THEN 'root'
            WHEN EXISTS (SELECT 1 FROM candidate_cells SEMI JOIN baseline_cells USING (task))
                THEN 'task'
        END AS paired_by
),

candidate_units AS (
    SELECT
        CASE paired_by WHEN 'task' THEN coalesce(task, root) ELSE root END AS unit,
        CASE paired_by WHEN 'task' THEN planned ELSE cell END AS cell,
        sum(runs) AS runs,
        sum(known) AS known,
        sum(good) AS good
    FROM candidate_cells, pairing
    GROUP BY ALL
),

baseline_units AS (
    SELECT
        CASE paired_by WHEN 'task' THEN coalesce(task, root) ELSE root END AS unit,
        CASE paired_by WHEN 'task' THEN planned ELSE cell END AS cell,
        sum(runs) AS runs,
        sum(known) AS known,
        sum(good) AS good
    FROM baseline_cells, pairing
    GROUP BY ALL
),

cells_side_by_side AS (
    SELECT
        unit,
        cell,
        paired_by,
        c.runs AS c_runs,
        b.runs AS b_runs,
        c.good / nullif(c.known, 0) AS c_rate,
        b.good / nullif(b.known, 0) AS b_rate,
        c.good / c.runs AS c_least,
        (c.good + c.runs - c.known) / c.runs AS c_most,
        b.good / b.runs AS b_least,
        (b.good + b.runs - b.known) / b.runs AS b_most,
        paired_by IS NULL OR c.runs IS NOT NULL AND b.runs IS NOT NULL AS counts,
        counts AND (paired_by IS NULL OR c_rate IS NOT NULL AND b_rate IS NOT NULL) AS is_pair
    FROM candidate_units AS c
    FULL JOIN baseline_units AS b USING (unit, cell)
    CROSS JOIN pairing
)

SELECT
    unit,
    paired_by,
    count(*) FILTER (counts) AS cells,
    count(*) FILTER (is_pair AND coalesce(c_rate, b_rate) IS NOT NULL) AS known,
    count(*) FILTER (NOT counts) AS left_out,
    avg(c_rate) FILTER (is_pair) AS candidate,
    avg(b_rate) FILTER (is_pair) AS baseline,
    avg(c_rate - b_rate) FILTER (is_pair) AS difference,
    avg(c_least) FILTER (counts) AS candidate_least,
    avg(c_most) FILTER (counts) AS candidate_most,
    avg(b_least) FILTER (counts) AS baseline_least,
    avg(b_most) FILTER (counts) AS baseline_most,
    coalesce(sum(c_runs) FILTER (counts), 0)::BIGINT AS candidate_runs,
    coalesce(sum(b_runs) FILTER (counts), 0)::BIGINT AS baseline_runs
FROM cells_side_by_side
GROUP BY unit, paired_by
ORDER BY unit;
