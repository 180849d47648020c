-- Runs of the compiler pipeline, one row each, scored from their stages by RAMP's published rules.
--
-- t4: the share of the possible improvement of golden IR, for runs of the embedded workload; t4_chain:
-- the same of the IR of the agent's own T3; t4_ramp: RAMP's
-- figure, which is about 80 for unchanged IR. pl: mean of T0 to T5; a stage that was not run scores 0, an unknown score (infrastructure error, provider)
-- makes all figures unknown but pl_known, the mean of the known scores.
-- mr: weights 1 2 2 3 3 4, times 1.2 unless an earlier stage scored under 100 (the paper's rule);
-- mr_a: the same with the weights 1 4 4 3 6 2 of RAMP's code and site; mr_pro: these without the
-- factor 1.2, as published on RAMP's Pro boards. stage_set: the stages that were run. mr_told and mr_a_told: the
-- bonus is lost as the run itself tells: at a stage that was done a second time (guided boards, and
-- our runs with --attempts), or
-- from the first stage on that was given a golden artifact (our runs); NULL where nothing is told.
-- pass_score: share of 9 points, 1.5 or 1 per passed stage; pass_score_told by the other flags.
-- tier: the last stage of a row of 100s from T0 on, -1 if none. zero_shot_pass: all stages passed,
-- none resurrected or attempted again. e2e_strict: T0 to T3 and T5 count 100 or 0, T4 as scored if passed, all 0 after
-- the first that failed. tokens: prompt and completion; ramp_tokens adds cached and reasoning
-- tokens once more, as RAMP does. idle_mr: mr of a run of the same workload that changed nothing
-- (agent starter; for ramp as published). gated_aei: see the macro. seconds, cost and tokens are
-- those of the stages where the run has none or went on from another. whole: neither a replay, nor a fork, nor
-- interrupted and gone on with in another run. unwritten_bytes of program_bytes: text of its programs
-- that no answer of its model holds. verified: the self-test of each sandbox that an agent worked in
-- found nothing of the run; false if any did, or had none; NULL of imported runs and of baselines.
WITH marks AS (
    SELECT
        *,
        list_position(['T0', 'T1', 'T2', 'T3', 'T4', 'T5'], stage) AS place,
        [1, 2, 2, 3, 3, 4][place] AS part,
        [1, 4, 4, 3, 6, 2][place] AS part_a,
        coalesce(score = 100, false) AS is_full,
        coalesce(CASE WHEN stage = 'T4' THEN score >= 60 ELSE score = 100 END, false) AS is_strict
    FROM stages
),

rows_so_far AS (
    SELECT
        *,
        -- A stage before it that was not run scored nothing.
        count(*) OVER so_far = place AS is_unbroken,
        is_unbroken AND bool_and(is_full) OVER so_far AS full_so_far,
        is_unbroken AND bool_and(is_strict) OVER so_far AS strict_so_far,
        CASE WHEN is_unbroken AND coalesce(bool_and(is_full) OVER earlier, true) THEN 1.2 ELSE 1.0 END
            AS bonus,
        CASE
            WHEN provenance IS NULL THEN resurrected
            -- What T0 and T1 are given is the task itself.
            ELSE
                bool_or(provenance = 'golden' AND stage > 'T1') OVER so_far
                OR coalesce(attempts > 1, false)
        END AS aided,
        CASE WHEN aided THEN 1.0 ELSE 1.2 END AS bonus_told
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
        max(workload) AS workload,
        max(mode) AS mode,
        max(arm) AS arm,
        string_agg(stage, ' ' ORDER BY stage) AS stage_set,
        max(sandbox) AS sandbox,
        coalesce(bool_and(coalesce(seen = '[]', false)) FILTER (outcome != 'not_attempted'), false)
            AS is_clear,
        max(score) FILTER (stage = 'T0') AS t0,
        max(score) FILTER (stage = 'T1') AS t1,
        max(score) FILTER (stage = 'T2') AS t2,
        max(score) FILTER (stage = 'T3') AS t3,
        max(score) FILTER (stage = 'T4') AS t4,
        max(score) FILTER (stage = 'T5') AS t5,
        max(coalesce(ramp_score, score)) FILTER (stage = 'T4') AS t4_ramp,
        max(chain_score) FILTER (stage = 'T4') AS t4_chain,
        bool_or(score IS NULL) AS unknown,
        bool_or(aided IS NULL) AS untold,
        sum(score) / 6 AS pl,
        avg(score) AS pl_known,
        -- 15 and 20 are the sums of the weights; what was not run weighs in with no bonus.
        sum(score * part * bonus) / (15 - sum(part) + sum(part * bonus)) AS mr,
        sum(score * part_a * bonus) / (20 - sum(part_a) + sum(part_a * bonus)) AS mr_a,
        sum(score * part_a) / 20 AS mr_pro,
        sum(score * part * bonus_told) / (15 - sum(part) + sum(part * bonus_told)) AS mr_told,
        sum(score * part_a * bonus_told) / (20 - sum(part_a) + sum(part_a * bonus_told))
            AS mr_a_told,
        100 * sum(CASE WHEN score < 60 THEN 0 WHEN bonus > 1 THEN 1.5 ELSE 1.0 END) / 9
            AS pass_score,
        100 * sum(CASE WHEN score < 60 THEN 0 WHEN bonus_told > 1 THEN 1.5 ELSE 1.0 END) / 9
            AS pass_score_told,
        count(*) FILTER (full_so_far) - 1 AS tier,
        count(*) FILTER (score >= 60) = 6
        AND NOT bool_or(coalesce(resurrected, false) OR coalesce(attempts > 1, false))
            AS zero_shot_pass,
        sum(CASE WHEN strict_so_far THEN score ELSE 0 END) / 6 AS e2e_strict,
        CASE WHEN count(resurrected) > 0 THEN count(*) FILTER (resurrected) END AS resurrections,
        count(*) FILTER (outcome IN ('infrastructure_error', 'provider')) AS infrastructure_errors,
        CASE WHEN count(unwritten_bytes) > 0 THEN sum(program_bytes)::BIGINT END AS program_bytes,
        sum(unwritten_bytes)::BIGINT AS unwritten_bytes,
        sum(seconds) AS stage_seconds,
        CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS stage_cost,
        CASE WHEN count(tokens) = count(*) THEN sum(tokens)::BIGINT END AS stage_tokens
    FROM rows_so_far
    GROUP BY trajectory_id
),

runs AS (
    SELECT
        t.*,
        scored.* EXCLUDE (trajectory_id),
        coalesce(t.source = 'resume', false) AS is_rest,
        -- The agent's own, without the grading between; imports have that of the run only.
        coalesce(stage_seconds, t.seconds) AS all_seconds,
        coalesce(CASE WHEN NOT is_rest THEN t.cost_usd END, stage_cost) AS all_cost,
        coalesce(CASE WHEN NOT is_rest THEN t.tokens END, stage_tokens) AS all_tokens,
        coalesce(
            t.ramp_tokens,
            CASE WHEN NOT is_rest THEN
                t.prompt_tokens
                + t.completion_tokens
                + coalesce(t.cached_tokens, 0)
                + coalesce(t.reasoning_tokens, 0)
            END,
            all_tokens
        ) AS counted_tokens,
        CASE WHEN NOT unknown THEN mr END AS known_mr
    FROM scored
    JOIN trajectories AS t USING (trajectory_id)
),

-- What a checkout scored as it was handed out, as RAMP's authors published it.
idle AS (
    SELECT workload, avg(known_mr) AS idle_mr
    FROM runs
    WHERE agent = 'starter' AND workload != 'ramp'
    GROUP BY workload
    UNION ALL
    SELECT
        'ramp' AS workload,
        (1.2 * (100 * 1 + 17.64 * 2) + 20.55 * 2 + 1.37 * 3 + 35.1 * 3) / (1.2 * 3 + 12) AS idle_mr
)

SELECT
    runs.trajectory_id,
    workload,
    mode,
    arm,
    stage_set,
    runs.cohort,
    runs.agent,
    runs.model,
    runs.condition,
    runs.forked_at IS NULL
    AND coalesce(runs.source, '') != 'replay'
    AND runs.trajectory_id NOT IN (
        SELECT parent_id FROM trajectories WHERE parent_id IS NOT NULL AND forked_at IS NULL
        AND coalesce(source, '') != 'replay'
    ) AS whole,
    t0,
    t1,
    t2,
    t3,
    t4,
    t5,
    t4_ramp,
    t4_chain,
    CASE WHEN NOT unknown THEN pl END AS pl,
    pl_known,
    known_mr AS mr,
    CASE WHEN NOT unknown THEN mr_a END AS mr_a,
    CASE WHEN NOT unknown THEN mr_pro END AS mr_pro,
    CASE WHEN NOT unknown AND NOT untold THEN mr_told END AS mr_told,
    CASE WHEN NOT unknown AND NOT untold THEN mr_a_told END AS mr_a_told,
    CASE WHEN NOT unknown THEN pass_score END AS pass_score,
    CASE WHEN NOT unknown AND NOT untold THEN pass_score_told END AS pass_score_told,
    tier,
    zero_shot_pass,
    CASE WHEN NOT unknown THEN e2e_strict END AS e2e_strict,
    resurrections,
    infrastructure_errors,
    program_bytes,
    unwritten_bytes,
    CASE WHEN sandbox IS NOT NULL AND coalesce(runs.agent, '') NOT IN ('starter', 'golden') THEN is_clear END
        AS verified,
    all_seconds AS seconds,
    all_cost AS cost_usd,
    all_tokens AS tokens,
    CASE WHEN NOT is_rest THEN runs.prompt_tokens END AS prompt_tokens,
    CASE WHEN NOT is_rest THEN runs.cached_tokens END AS cached_tokens,
    CASE WHEN NOT is_rest THEN runs.completion_tokens END AS completion_tokens,
    CASE WHEN NOT is_rest THEN runs.reasoning_tokens END AS reasoning_tokens,
    counted_tokens AS ramp_tokens,
    idle_mr,
    gated_aei(known_mr, idle_mr, all_seconds, all_cost, counted_tokens) AS gated_aei
FROM runs
LEFT JOIN idle USING (workload);
