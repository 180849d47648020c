-- Do two judge versions agree on the same injections? Cohen's kappa, and the disagreements.
-- default: a = null, b = null
--
-- Without versions: the newest two. agreed is the share of equal classes.
WITH versions AS (
    SELECT
        coalesce($a::BIGINT, max(judge_version) FILTER (rank = 2)) AS a,
        coalesce($b::BIGINT, max(judge_version) FILTER (rank = 1)) AS b
    FROM (
        SELECT judge_version, row_number() OVER (ORDER BY judge_version DESC) AS rank
        FROM (SELECT DISTINCT judge_version FROM outcomes WHERE judge_version IS NOT NULL)
    )
),

both_said AS (
    SELECT
        one.judge_version AS a,
        other.judge_version AS b,
        one.class AS a_class,
        other.class AS b_class,
        one.noticed AS a_noticed,
        other.noticed AS b_noticed
    FROM versions
    JOIN outcomes AS one ON one.judge_version = versions.a
    JOIN outcomes AS other
        ON other.judge_version = versions.b AND one.injection_id = other.injection_id
    WHERE one.class IS NOT NULL AND other.class IS NOT NULL
)

SELECT
    a,
    b,
    count(*) AS injections,
    count(*) FILTER (a_class = b_class) / count(*) AS agreed,
    kappa(list(a_class), list(b_class)) AS kappa_class,
    kappa(
        list(a_noticed) FILTER (a_noticed IS NOT NULL AND b_noticed IS NOT NULL),
        list(b_noticed) FILTER (a_noticed IS NOT NULL AND b_noticed IS NOT NULL)
    ) AS kappa_noticed
FROM both_said
GROUP BY a, b;
