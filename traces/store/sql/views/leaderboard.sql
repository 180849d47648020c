-- Each agent and model once per kind of pipeline: scores, efficiency, cost, recovery and survival.
--
-- Pipeline figures are means over clean runs from their first stage (replays and forks are none),
-- kept apart by workload, mode, arm, stages that were run, cohort, and whether the sandbox is
-- verified (pipeline_runs); _lo and _hi are 95 % intervals by Student's t
-- over runs, NULL with a reason where there are fewer than two. tier is the median, its _lo and _hi
-- the lowest and the highest. mr_faulted: the mean of runs that a fault was injected into.
-- aei: RAMP's index against aei_cohort: the run's own cohort, else `paper` where it is in the store;
-- runs of some stages only have none; aei_most holds that cohort's maxima, and `indexes` the same against every cohort there is.
-- Recovery, silent failure and survival are those of resilience: that agent and model in the one
-- world in which it was struck; where there are several, measured_in names them and the figures are
-- NULL (several_worlds), as they are if several judge versions, or several verifiers of the same
-- recordings, judged its runs (several_judges; resilience keeps them apart). Who was struck and ran no pipeline has a row too.
WITH runs AS (
    SELECT
        *,
        CASE
            WHEN condition = 'clean' AND whole THEN 'clean'
            WHEN trajectory_id IN (
                SELECT trajectory_id FROM judged_injections WHERE NOT sham AND state != 'unfired'
            ) THEN 'faulted'
        END AS kind
    FROM pipeline_runs
),

entries AS (
    SELECT
        workload,
        mode,
        arm,
        stage_set,
        verified,
        cohort,
        agent,
        model,
        count(*) FILTER (kind = 'clean') AS runs,
        avg(t0) FILTER (kind = 'clean') AS t0,
        avg(t1) FILTER (kind = 'clean') AS t1,
        avg(t2) FILTER (kind = 'clean') AS t2,
        avg(t3) FILTER (kind = 'clean') AS t3,
        avg(t4) FILTER (kind = 'clean') AS t4,
        avg(t5) FILTER (kind = 'clean') AS t5,
        avg(t4_ramp) FILTER (kind = 'clean') AS t4_ramp,
        avg(mr_pro) FILTER (kind = 'clean') AS mr_pro,
        kept_within(over_runs(list(mr) FILTER (kind = 'clean' AND mr IS NOT NULL)), 100) AS mr,
        kept_within(over_runs(list(mr_a) FILTER (kind = 'clean' AND mr_a IS NOT NULL)), 100)
            AS mr_a,
        kept_within(over_runs(list(pl) FILTER (kind = 'clean' AND pl IS NOT NULL)), 100) AS pl,
        kept_within(
            over_runs(list(pass_score) FILTER (kind = 'clean' AND pass_score IS NOT NULL)), 100
        ) AS pass_score,
        kept_within(
            over_runs(list(gated_aei) FILTER (kind = 'clean' AND gated_aei IS NOT NULL)), 100
        ) AS gated_aei,
        kept_within(over_runs(list(cost_usd) FILTER (kind = 'clean' AND cost_usd IS NOT NULL)), NULL)
            AS cost_usd,
        kept_within(over_runs(list(seconds) FILTER (kind = 'clean' AND seconds IS NOT NULL)), NULL)
            AS seconds,
        avg(ramp_tokens) FILTER (kind = 'clean') AS ramp_tokens,
        avg(tokens) FILTER (kind = 'clean') AS tokens,
        avg(prompt_tokens) FILTER (kind = 'clean') AS prompt_tokens,
        avg(cached_tokens) FILTER (kind = 'clean') AS cached_tokens,
        avg(completion_tokens) FILTER (kind = 'clean') AS completion_tokens,
        avg(reasoning_tokens) FILTER (kind = 'clean') AS reasoning_tokens,
        avg(e2e_strict) FILTER (kind = 'clean') AS e2e_strict,
        bool_or(idle_mr IS NOT NULL) AS has_idle,
        avg(resurrections) FILTER (kind = 'clean') AS resurrections,
        count(*) FILTER (kind = 'clean' AND zero_shot_pass) AS zero_shot_passes,
        sum(infrastructure_errors) FILTER (kind = 'clean')::BIGINT AS infrastructure_errors,
        quantile_disc(tier, 0.5) FILTER (kind = 'clean') AS tier,
        min(tier) FILTER (kind = 'clean') AS tier_lo,
        max(tier) FILTER (kind = 'clean') AS tier_hi,
        count(*) FILTER (kind = 'faulted') AS runs_faulted,
        kept_within(over_runs(list(mr) FILTER (kind = 'faulted' AND mr IS NOT NULL)), 100)
            AS mr_faulted
    FROM runs
    WHERE kind IS NOT NULL
    GROUP BY workload, mode, arm, stage_set, verified, cohort, agent, model
),

indexed AS (
    SELECT
        runs.workload,
        runs.mode,
        runs.arm,
        runs.stage_set,
        runs.verified,
        runs.cohort,
        runs.agent,
        runs.model,
        efficiency.cohort AS against,
        any_value(efficiency.most) AS most,
        any_value(efficiency.runs) AS cohort_runs,
        kept_within(over_runs(list(aei) FILTER (aei IS NOT NULL)), 100) AS aei
    FROM runs
    JOIN efficiency USING (trajectory_id)
    WHERE kind = 'clean'
    GROUP BY ALL
),

indexes AS (
    SELECT
        workload,
        mode,
        arm,
        stage_set,
        verified,
        cohort,
        agent,
        model,
        list({'cohort': against, 'aei': aei, 'runs': cohort_runs, 'most': most} ORDER BY against)
            AS indexes
    FROM indexed
    GROUP BY workload, mode, arm, stage_set, verified, cohort, agent, model
),

struck AS (
    SELECT
        agent,
        model,
        list_sort(list(DISTINCT measured_in)) AS measured_in,
        arg_max({'rate': recovery_rate, 'lo': recovery_rate_lo, 'hi': recovery_rate_hi, 'reason': recovery_rate_reason}, settled)
            AS recovery,
        arg_max({'rate': silent_rate, 'lo': silent_rate_lo, 'hi': silent_rate_hi, 'reason': silent_rate_reason}, settled)
            AS silent,
        arg_max({'rate': survival_20, 'lo': survival_20_lo, 'hi': survival_20_hi, 'reason': survival_20_reason}, settled)
            AS survival_20,
        arg_max({'rate': survival_50, 'lo': survival_50_lo, 'hi': survival_50_hi, 'reason': survival_50_reason}, settled)
            AS survival_50,
        sum(judged)::BIGINT AS judged,
        sum(fired)::BIGINT AS fired,
        CASE
            WHEN count(DISTINCT measured_in) > 1 THEN 'several_worlds'
            WHEN count(*) FILTER (settled > 0) > 1 THEN 'several_judges'
        END AS not_alike
    FROM resilience
    GROUP BY agent, model
),

held AS (
    SELECT * REPLACE (
        CASE WHEN not_alike IS NULL THEN recovery END AS recovery,
        CASE WHEN not_alike IS NULL THEN silent END AS silent,
        CASE WHEN not_alike IS NULL THEN survival_20 END AS survival_20,
        CASE WHEN not_alike IS NULL THEN survival_50 END AS survival_50
    )
    FROM struck
),

joined AS (
    SELECT
        entries.* EXCLUDE (agent, model),
        coalesce(entries.agent, held.agent) AS agent,
        coalesce(entries.model, held.model) AS model,
        held.* EXCLUDE (agent, model, not_alike),
        indexes.indexes,
        list_filter(indexes, lambda x: x.cohort = coalesce(entries.cohort, 'paper'))[1] AS own,
        CASE WHEN held.fired IS NULL THEN 'not_faulted' ELSE held.not_alike END AS not_held
    FROM entries
    LEFT JOIN indexes
        ON
            entries.workload IS NOT DISTINCT FROM indexes.workload
            AND entries.mode IS NOT DISTINCT FROM indexes.mode
            AND entries.arm IS NOT DISTINCT FROM indexes.arm
            AND entries.stage_set IS NOT DISTINCT FROM indexes.stage_set
            AND entries.verified IS NOT DISTINCT FROM indexes.verified
            AND entries.cohort IS NOT DISTINCT FROM indexes.cohort
            AND entries.agent IS NOT DISTINCT FROM indexes.agent
            AND entries.model IS NOT DISTINCT FROM indexes.model
    FULL JOIN held
        ON
            entries.agent IS NOT DISTINCT FROM held.agent
            AND entries.model IS NOT DISTINCT FROM held.model
)

SELECT
    cohort,
    workload,
    mode,
    arm,
    stage_set,
    verified,
    agent,
    model,
    coalesce(runs, 0) AS runs,
    t0,
    t1,
    t2,
    t3,
    t4,
    t5,
    mr.mean AS mr,
    mr.lo AS mr_lo,
    mr.hi AS mr_hi,
    CASE WHEN runs IS NULL THEN 'no_pipeline' ELSE mr.reason END AS mr_reason,
    mr_a.mean AS mr_a,
    mr_a.lo AS mr_a_lo,
    mr_a.hi AS mr_a_hi,
    mr_pro,
    t4_ramp,
    pl.mean AS pl,
    pl.lo AS pl_lo,
    pl.hi AS pl_hi,
    pass_score.mean AS pass_score,
    pass_score.lo AS pass_score_lo,
    pass_score.hi AS pass_score_hi,
    tier,
    tier_lo,
    tier_hi,
    own.aei.mean AS aei,
    own.aei.lo AS aei_lo,
    own.aei.hi AS aei_hi,
    CASE
        WHEN runs IS NULL THEN 'no_pipeline'
        WHEN stage_set != 'T0 T1 T2 T3 T4 T5' THEN 'some_stages'
        WHEN own IS NULL THEN 'no_cohort'
        ELSE own.aei.reason
    END AS aei_reason,
    own.cohort AS aei_cohort,
    own.runs AS aei_runs,
    own.most AS aei_most,
    gated_aei.mean AS gated_aei,
    gated_aei.lo AS gated_aei_lo,
    gated_aei.hi AS gated_aei_hi,
    CASE
        WHEN runs IS NULL THEN 'no_pipeline'
        WHEN NOT has_idle THEN 'no_baseline'
        ELSE gated_aei.reason
    END AS gated_aei_reason,
    cost_usd.mean AS cost_usd,
    cost_usd.lo AS cost_usd_lo,
    cost_usd.hi AS cost_usd_hi,
    CASE WHEN runs IS NULL THEN 'no_pipeline' ELSE cost_usd.reason END AS cost_usd_reason,
    seconds.mean AS seconds,
    seconds.lo AS seconds_lo,
    seconds.hi AS seconds_hi,
    tokens,
    prompt_tokens,
    cached_tokens,
    completion_tokens,
    reasoning_tokens,
    ramp_tokens,
    e2e_strict,
    resurrections,
    zero_shot_passes,
    infrastructure_errors,
    coalesce(runs_faulted, 0) AS runs_faulted,
    mr_faulted.mean AS mr_faulted,
    mr_faulted.lo AS mr_faulted_lo,
    mr_faulted.hi AS mr_faulted_hi,
    judged,
    recovery.rate AS recovery_rate,
    recovery.lo AS recovery_rate_lo,
    recovery.hi AS recovery_rate_hi,
    coalesce(not_held, recovery.reason) AS recovery_rate_reason,
    silent.rate AS silent_rate,
    silent.lo AS silent_rate_lo,
    silent.hi AS silent_rate_hi,
    coalesce(not_held, silent.reason) AS silent_rate_reason,
    survival_20.rate AS survival_20,
    survival_20.lo AS survival_20_lo,
    survival_20.hi AS survival_20_hi,
    coalesce(not_held, survival_20.reason) AS survival_20_reason,
    survival_50.rate AS survival_50,
    survival_50.lo AS survival_50_lo,
    survival_50.hi AS survival_50_hi,
    coalesce(not_held, survival_50.reason) AS survival_50_reason,
    measured_in,
    indexes
FROM joined;
