-- The verdict on each injection, of the newest judge that gave one.
SELECT *
FROM outcomes
QUALIFY row_number() OVER (PARTITION BY injection_id ORDER BY judge_version DESC) = 1;
