-- Where in a failed run is the decisive mistake? Steps as people dated them.
--
-- position: the mistake's turn, the first being 1, over the number of turns. Runs were chosen because they
-- failed, so that nothing follows for how often agents fail.
WITH dated AS (
    SELECT suite, mistake_step, (mistake_step + 1) / steps AS position
    FROM run
    WHERE mistake_step IS NOT NULL AND steps > 0
)

SELECT
    coalesce(suite, 'all') AS suite,
    count(*) AS runs,
    median(mistake_step) AS median_step,
    median(position) AS median_position,
    avg((position <= 1 / 3)::INT) AS first_third,
    avg((position > 2 / 3)::INT) AS last_third
FROM dated
GROUP BY GROUPING SETS ((suite), ())
ORDER BY suite = 'all', suite;
