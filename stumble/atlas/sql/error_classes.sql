-- Which errors do tools return, and how soon does a call work again? By model and class.
--
-- Classes are those of `stumble faults` that a text can show. per_100_steps: errors of the class for
-- 100 steps, clustered by task. local_rate: a later call of the run worked; within: median number of
-- calls until then; repeated: the share of errors whose call was the same as the one before.
WITH per_task AS (
    SELECT
        suite,
        agent,
        model,
        task,
        error_class,
        count(call) FILTER (is_error)::DOUBLE AS k_errors,
        count(recovered_within)::DOUBLE AS k_recovered,
        list(recovered_within) FILTER (recovered_within IS NOT NULL) AS some_within,
        count(*) FILTER (is_error AND same_as_previous)::DOUBLE AS k_repeated
    FROM run
    JOIN call USING (run_id)
    WHERE is_error
    GROUP BY suite, agent, model, task, error_class
),

exposed AS (
    SELECT suite, agent, model, task, sum(steps)::DOUBLE AS k_steps
    FROM run
    WHERE steps > 0 AND run_id IN (SELECT run_id FROM call WHERE is_error IS NOT NULL)
    GROUP BY suite, agent, model, task
),

classes AS (
    SELECT DISTINCT suite, agent, model, error_class FROM per_task
),

joined AS (
    SELECT
        e.suite,
        e.agent,
        e.model,
        c.error_class,
        e.k_steps,
        coalesce(p.k_errors, 0) AS k_errors,
        coalesce(p.k_recovered, 0) AS k_recovered,
        coalesce(p.k_repeated, 0) AS k_repeated,
        coalesce(p.some_within, []) AS some_within
    FROM exposed AS e
    JOIN classes AS c ON (e.suite, e.agent, e.model) IS NOT DISTINCT FROM (c.suite, c.agent, c.model)
    LEFT JOIN per_task AS p
        ON
            (e.suite, e.agent, e.model, e.task) IS NOT DISTINCT FROM (p.suite, p.agent, p.model, p.task)
            AND p.error_class = c.error_class
),

rates AS (
    SELECT
        suite,
        agent,
        model,
        error_class,
        sum(k_errors)::BIGINT AS errors,
        clustered(list(k_errors), list(greatest(k_steps, k_errors))) AS per_step,
        clustered(
            list(k_recovered) FILTER (k_errors > 0), list(k_errors) FILTER (k_errors > 0)
        ) AS local,
        list_median(flatten(list(some_within))) AS within,
        sum(k_repeated) / nullif(sum(k_errors), 0) AS repeated
    FROM joined
    GROUP BY suite, agent, model, error_class
)

SELECT
    suite,
    agent,
    model,
    error_class,
    errors,
    100 * per_step.rate AS per_100_steps,
    100 * per_step.lo AS lo,
    100 * per_step.hi AS hi,
    local.rate AS local_rate,
    local.lo AS local_lo,
    local.hi AS local_hi,
    within,
    repeated,
    local.reason AS reason
FROM rates
ORDER BY suite, agent, model, errors DESC, error_class;
