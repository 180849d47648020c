-- The verdict on each injection, from the newest judge version that gave one.
--
-- Only what was judged more than once is ranked: that is rare, and ranking all is slow.
WITH judged_again AS (
    SELECT injection_id
    FROM outcomes
    GROUP BY injection_id
    HAVING count(*) > 1
)

SELECT *
FROM outcomes
ANTI JOIN judged_again USING (injection_id)
UNION ALL
SELECT *
FROM outcomes
SEMI JOIN judged_again USING (injection_id)
QUALIFY row_number() OVER (PARTITION BY injection_id ORDER BY judge_version DESC) = 1;
