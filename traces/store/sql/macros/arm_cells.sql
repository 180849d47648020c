-- Runs of one arm of a comparison, each cell once: {root, task, cell, planned, runs, known, good}.
--
-- An arm is the runs of a campaign by an agent, model and world; NULL leaves one open. A cell is
-- one fault at one call of a root (planned leaves the call out); several runs of it count together.
-- measure: ends-right or handled, as strikes has them, or silent; good counts what is wanted, so for
-- silent the runs that are not silently wrong. known: those whose value of the measure is not NULL.
-- Faults that never fired, and shams, are not among the runs.
CREATE MACRO arm_cells(of_campaign, of_agent, of_model, of_world, measure) AS TABLE
WITH facts AS (
    SELECT
        s.trace AS root,
        t.task,
        coalesce(
            regexp_replace(t.cell, '/model .*$', ''),
            concat_ws('/', t.forked_at, s.place, s.persist, s.params, t.seed)
        ) || '/' || s.op AS cell,
        CASE measure
            WHEN 'silent' THEN s.silent IS NOT NULL
            WHEN 'handled' THEN s.handled IS NOT NULL
            ELSE s.settled
        END AS is_known,
        CASE measure
            WHEN 'silent' THEN NOT s.silent
            WHEN 'handled' THEN s.handled
            ELSE s.ends_right
        END AS is_good
    FROM judged_injections AS s
    JOIN trajectories AS t USING (trajectory_id)
    WHERE
        NOT s.sham
        AND s.state != 'unfired'
        AND (measure != 'silent' OR s.state IN ('consumed', 'undecided') OR s.broken)
        AND (of_campaign IS NULL OR t.campaign = of_campaign)
        AND (of_agent IS NULL OR t.agent = of_agent)
        AND (of_model IS NULL OR t.model = of_model)
        AND (of_world IS NULL OR t.world = of_world)
)

SELECT
    root,
    task,
    cell,
    regexp_replace(cell, '^.*?@(http|mcp|model|model-boundary)/', '') AS planned,
    count(*) AS runs,
    count(*) FILTER (is_known) AS known,
    count(*) FILTER (is_known AND is_good) AS good
FROM facts
GROUP BY root, task, cell;
