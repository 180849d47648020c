-- Pipeline runs, one row each, beside what the same model does when a tool fails.
--
-- pl: mean of T0 to T5; a stage that was not run scores 0, an unknown score (infrastructure error)
-- makes all figures unknown but pl_known, the mean of the known scores.
-- mr: weights 1 2 2 3 3 4, times 1.2 unless an earlier stage scored under 100. pass_score: share of
-- 9 points, 1.5 or 1 per passed stage by the same rule. tier: the last stage of an unbroken row of
-- 100s, -1 if none. zero_shot_pass: all stages passed, none resurrected. e2e_strict: T0 to T3 and
-- T5 count 100 or 0, T4 as scored if passed, all 0 after the first that failed. aei: mean of tier,
-- mr, and what was saved of seconds, cost and tokens, each against the cohort's maximum, so it
-- moves when a run joins the cohort, and a run that does nothing scores over 60.
-- Recovery figures are means over operators, of the one agent and world in which that model was
-- struck; where there are several, measured_in names them and the figures are NULL.
WITH marks AS (
    SELECT
        *,
        [1, 2, 2, 3, 3, 4][list_position(['T0', 'T1', 'T2', 'T3', 'T4', 'T5'], stage)] AS part,
        coalesce(score = 100, false) AS is_full,
        coalesce(CASE WHEN stage = 'T4' THEN score >= 60 ELSE score = 100 END, false) AS is_strict
    FROM stages
),

rows_so_far AS (
    SELECT
        *,
        bool_and(is_full) OVER so_far AS full_so_far,
        bool_and(is_strict) OVER so_far AS strict_so_far,
        coalesce(bool_and(is_full) OVER earlier, true) AS unaided
    FROM marks
    WINDOW
        so_far AS (PARTITION BY trajectory_id ORDER BY stage),
        earlier AS (
            PARTITION BY trajectory_id ORDER BY stage
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),

scored AS (
    SELECT
        trajectory_id,
        max(score) FILTER (stage = 'T0') AS t0,
        max(score) FILTER (stage = 'T1') AS t1,
        max(score) FILTER (stage = 'T2') AS t2,
        max(score) FILTER (stage = 'T3') AS t3,
        max(score) FILTER (stage = 'T4') AS t4,
        max(score) FILTER (stage = 'T5') AS t5,
        bool_or(score IS NULL) AS unknown,
        sum(score) / 6 AS pl,
        avg(score) AS pl_known,
        -- 15 is the sum of the weights; what was not run weighs in with no bonus and no score.
        sum(score * part * bonus) / (15 - sum(part) + sum(part * bonus)) AS mr,
        100 * sum(CASE WHEN score < 60 THEN 0 WHEN unaided THEN 1.5 ELSE 1.0 END) / 9 AS pass_score,
        count(*) FILTER (full_so_far) - 1 AS tier,
        count(*) FILTER (score >= 60) = 6 AND NOT bool_or(coalesce(resurrected, false))
            AS zero_shot_pass,
        sum(CASE WHEN strict_so_far THEN score ELSE 0 END) / 6 AS e2e_strict,
        count(*) FILTER (resurrected) AS resurrections,
        count(*) FILTER (outcome = 'infrastructure_error') AS infrastructure_errors,
        sum(seconds) AS stage_seconds,
        sum(cost_usd) AS stage_cost,
        sum(tokens)::BIGINT AS stage_tokens
    FROM (SELECT *, CASE WHEN unaided THEN 1.2 ELSE 1.0 END AS bonus FROM rows_so_far)
    GROUP BY trajectory_id
),

runs AS (
    SELECT
        scored.* EXCLUDE (stage_seconds, stage_cost, stage_tokens),
        t.cohort,
        t.agent,
        t.model,
        coalesce(t.seconds, stage_seconds) AS seconds,
        coalesce(t.cost_usd, stage_cost) AS cost_usd,
        coalesce(t.tokens, stage_tokens) AS tokens
    FROM scored
    JOIN trajectories AS t USING (trajectory_id)
),

struck AS (
    SELECT
        model,
        list(DISTINCT concat_ws(' in ', agent, world)) AS measured_in,
        avg(recovery_rate) AS recovery_rate,
        avg(silent_rate) AS silent_rate
    FROM recovery
    WHERE fired > 0
    GROUP BY model
),

lasting AS (
    SELECT
        model,
        max(survival) FILTER (n = 20) AS survival_20,
        max(survival) FILTER (n = 50) AS survival_50
    FROM survival
    WHERE basis = 'model' AND e_from = 'assumed' AND e = 0.02 AND survival IS NOT NULL
    GROUP BY model
)

SELECT
    cohort,
    agent,
    model,
    trajectory_id,
    t0,
    t1,
    t2,
    t3,
    t4,
    t5,
    CASE WHEN NOT unknown THEN pl END AS pl,
    pl_known,
    CASE WHEN NOT unknown THEN mr END AS mr,
    CASE WHEN NOT unknown THEN pass_score END AS pass_score,
    tier,
    zero_shot_pass,
    CASE WHEN NOT unknown THEN e2e_strict END AS e2e_strict,
    resurrections,
    infrastructure_errors,
    seconds,
    cost_usd,
    tokens,
    CASE WHEN cohort IS NOT NULL AND NOT unknown THEN (
        CASE WHEN tier > 0 THEN 100 * tier / max(tier) OVER one ELSE 0 END
        + 100 * mr / nullif(max(mr) OVER one, 0)
        + 100 - 100 * seconds / nullif(max(seconds) OVER one, 0)
        + 100 - 100 * cost_usd / nullif(max(cost_usd) OVER one, 0)
        + 100 - 100 * tokens / nullif(max(tokens) OVER one, 0)
    ) / 5 END AS aei,
    CASE WHEN len(measured_in) = 1 THEN recovery_rate END AS recovery_rate,
    CASE WHEN len(measured_in) = 1 THEN silent_rate END AS silent_rate,
    CASE WHEN len(measured_in) = 1 THEN survival_20 END AS survival_20,
    CASE WHEN len(measured_in) = 1 THEN survival_50 END AS survival_50,
    measured_in
FROM runs
LEFT JOIN struck USING (model)
LEFT JOIN lasting USING (model)
WINDOW one AS (PARTITION BY cohort);
