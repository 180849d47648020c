-- Which arms are comparable? Injections and judges per campaign, agent, model and world.
--
-- seals: the digests on their tapes, '' for a run that is of no sealed plan. again: cells that were
-- run more than once for one recording, of which there are none in a campaign that nobody touched.
-- has_second_verifier: two verifiers judged runs of one recording (see measured_by in judged_injections).
WITH runs AS (
    SELECT
        t.campaign,
        t.agent,
        t.model,
        t.world,
        s.trace,
        coalesce(t.seal, '') AS seal,
        coalesce(t.verifier_of, t.verifier) AS verifier,
        s.measured_by,
        s.judge_version,
        s.state,
        s.settled,
        count(*) OVER (
            PARTITION BY t.campaign, t.agent, t.model, t.world, t.parent_id, t.cell, s.op
        ) AS of_cell,
        t.cell
    FROM judged_injections AS s
    JOIN trajectories AS t USING (trajectory_id)
    WHERE NOT s.sham
)

SELECT
    campaign,
    agent,
    model,
    world,
    count(DISTINCT trace) AS roots,
    count(*) FILTER (state != 'unfired') AS fired,
    count(*) FILTER (settled) AS settled,
    count(*) FILTER (cell IS NOT NULL AND of_cell > 1) AS again,
    list_sort(list(DISTINCT seal)) AS seals,
    list_sort(list(DISTINCT judge_version)) AS judge_versions,
    list_sort(list(DISTINCT verifier)) AS verifiers,
    max(measured_by.verifier) > 1 AS has_second_verifier
FROM runs
GROUP BY campaign, agent, model, world
ORDER BY campaign, agent, model, world;
