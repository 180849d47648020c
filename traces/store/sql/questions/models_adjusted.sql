-- Which model is better on the same tasks? Differences of pass rates over tasks that both tried.
--
-- Estimand: the mean over tasks that both models tried of the difference of their pass rates, each
-- task with the same weight: a model that tried easier tasks gains nothing. Of clean runs with a
-- verdict, of all agents; tasks of different suites are different. The interval is Student's t over
-- tasks; few_tasks for fewer than five. plain_a and plain_b are the rates over all own tasks.
WITH per_task AS (
    SELECT model, cluster, avg((NOT died)::INT) AS rate
    FROM clean_runs
    WHERE died IS NOT NULL AND model IS NOT NULL
    GROUP BY model, cluster
),

plain AS (SELECT model, avg(rate) AS rate FROM per_task GROUP BY model),

paired AS (
    SELECT
        a.model AS model_a,
        b.model AS model_b,
        count(*) AS tasks,
        avg(a.rate) AS pass_a,
        avg(b.rate) AS pass_b,
        over_runs(list(a.rate - b.rate)) AS difference
    FROM per_task AS a
    JOIN per_task AS b ON a.cluster = b.cluster AND a.model < b.model
    GROUP BY a.model, b.model
)

SELECT
    model_a,
    model_b,
    tasks,
    pass_a,
    pass_b,
    difference.mean AS difference,
    CASE WHEN tasks >= 5 THEN difference.lo END AS difference_lo,
    CASE WHEN tasks >= 5 THEN difference.hi END AS difference_hi,
    CASE WHEN tasks < 5 THEN 'few_tasks' ELSE difference.reason END AS difference_reason,
    one.rate AS plain_a,
    other.rate AS plain_b
FROM paired
JOIN plain AS one ON paired.model_a = one.model
JOIN plain AS other ON paired.model_b = other.model
ORDER BY tasks DESC, model_a, model_b;
