-- The verdict on each injection, from the newest judge version that gave one.
--
-- Only what was judged more than once is ranked: that is rare, and ranking all is slow.
WITH given AS (FROM outcomes),

judged_again AS (
    SELECT injection_id
    FROM given
    GROUP BY injection_id
    HAVING count(*) > 1
)

SELECT *
FROM given
ANTI JOIN judged_again USING (injection_id)
UNION ALL
SELECT *
FROM given
SEMI JOIN judged_again USING (injection_id)
QUALIFY row_number() OVER (PARTITION BY injection_id ORDER BY judge_version DESC) = 1;
