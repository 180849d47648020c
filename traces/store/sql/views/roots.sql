-- The root recording of each run, through parents of parents: the cluster of the intervals.
--
-- Forks of forks of one recording are one cluster: none of them is evidence of its own. root_id is
-- the oldest ancestor that is named, whether or not it is in the store; runs from their first step
-- are not listed.
WITH RECURSIVE ancestors AS (
    SELECT trajectory_id, parent_id AS ancestor_id
    FROM trajectories
    WHERE parent_id IS NOT NULL
    UNION
    SELECT ancestors.trajectory_id, trajectories.parent_id
    FROM ancestors
    JOIN trajectories ON ancestors.ancestor_id = trajectories.trajectory_id
    WHERE trajectories.parent_id IS NOT NULL
)

SELECT trajectory_id, min(ancestor_id) AS root_id
FROM ancestors
WHERE ancestor_id NOT IN (SELECT trajectory_id FROM ancestors)
GROUP BY trajectory_id;
