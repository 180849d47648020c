-- The root recording of each run, through parents of parents: the cluster of the intervals.
--
-- Forks of forks of one recording are one cluster: none of them is evidence of its own. root_id is
-- the oldest ancestor that is named, whether or not it is in the store; runs from their first step
-- are not listed.
-- Only parents that are forks themselves are followed: most are not, and following all is slow.
WITH RECURSIVE forks AS (
    SELECT trajectory_id, parent_id
    FROM trajectories
    WHERE parent_id IS NOT NULL
),

ancestors AS (
    SELECT trajectory_id, parent_id AS ancestor_id
    FROM forks
    WHERE parent_id IN (SELECT trajectory_id FROM forks)
    UNION
    SELECT ancestors.trajectory_id, forks.parent_id
    FROM ancestors
    JOIN forks ON ancestors.ancestor_id = forks.trajectory_id
)

SELECT trajectory_id, min(ancestor_id) AS root_id
FROM (
    SELECT trajectory_id, parent_id AS ancestor_id
    FROM forks
    UNION ALL
    FROM ancestors
)
WHERE ancestor_id NOT IN (SELECT trajectory_id FROM forks)
GROUP BY trajectory_id;
