-- Is it good enough? The rates that `stumble gate` judges per agent, model and world, with bounds.
-- default: confidence = 0.95, by = "all", op = null, model = null, agent = null, scenario = null, campaign = null, budget = "failed", labels = null
--
-- by: all pools the operators (their mix moves the rate), op and family keep them apart. Agents,
-- models and worlds are never pooled. lo and hi are the bounds of `clustered_at`. If operators or
-- families are kept apart, they hold the limit all at once or not at all, so each has the
-- confidence 1 - (1 - confidence) / parts (Bonferroni): all its intervals together hold with the
-- confidence that was asked for; so far out Wilson's bound of a few cases is too near, so that each is
-- at least Clopper and Pearson's of as many effective cases. t is how many standard errors the bounds are away. budget:
-- `failed` counts runs that were still going when their budget was up as failures, `censored`
-- leaves them out; by_budget is their number, other_rate the rate if they are counted the other way.
-- reason: as clustered_at has it, or mixed_judges and mixed_verifiers, where what was counted was not
-- measured alike, so that there are no bounds. unknown: cases of the measure whose value is not known; least and most
-- are the rate with all of them against and for, and lo and hi reach from the lower bound of the one
-- to the upper of the other, so that a gate passes whatever they are (Horowitz and Manski 2000);
-- known_lo and known_hi are those of the known cases alone. fired, and left_out: how many faults
-- struck, and how many of them have no class, most of them as left_out_as says. labels: JSON, a list
-- of {injection_id, noticed, claims_success} as people read runs that were drawn at random; judge_error
-- is then the judge's own sensitivity and specificity for the measure, over all labelled runs of the
-- selection, and the rate and the bounds behind it (behind_judge). The verified end needs no judge.
WITH facts AS (
    SELECT
        *,
        NOT (by_budget AND $budget = 'censored') AS counts,
        NOT (by_budget AND $budget != 'censored') AS counts_otherwise,
        CASE $by WHEN 'op' THEN op WHEN 'family' THEN family ELSE 'all' END AS part
    FROM judged_injections
    WHERE
        NOT sham
        AND ($op IS NULL OR op = $op)
        AND ($model IS NULL OR model = $model)
        AND ($agent IS NULL OR agent = $agent)
        AND ($scenario IS NULL OR scenario = $scenario)
        AND ($campaign IS NULL OR campaign = $campaign)
),

measured AS (
    SELECT
        agent,
        model,
        world,
        trace,
        part,
        op,
        measured_by,
        state != 'unfired' AS fired,
        excluded AS left_out_as,
        by_budget,
        counts,
        counts_otherwise,
        unnest([
            {
                'measure': 'recovery',
                'hit': recovered,
                'of': noticeable,
                'open': unknown.recovered
            },
            {
                'measure': 'handled',
                'hit': handled,
                'of': handled IS NOT NULL,
                'open': unknown.handled
            },
            {
                'measure': 'ends_right',
                'hit': ends_right,
                'of': settled,
                'open': unknown.ends_right
            },
            {
                'measure': 'silent',
                'hit': silent,
                'of': silent IS NOT NULL,
                'open': unknown.silent
            }
        ], recursive := true)
    FROM facts
),

labels AS (
    SELECT
        unnest(
            $labels::JSON::STRUCT(injection_id VARCHAR, noticed BOOLEAN, claims_success BOOLEAN) [],
            recursive := true
        )
),

-- What the labels and the verified end amount to, beside what was read.
labelled AS (
    SELECT unnest([
        {'measure': 'recovery', 'hit': recovered, 'truth': ends_right AND labels.noticed},
        {
            'measure': 'handled',
            'hit': handled,
            'truth':
                ends_right
                OR (NOT labels.claims_success AND class IS DISTINCT FROM 'crashed' AND NOT by_budget)
        },
        {
            'measure': 'silent',
            'hit': silent,
            'truth':
                NOT ends_right AND class IS DISTINCT FROM 'crashed' AND NOT by_budget
                AND labels.claims_success AND NOT labels.noticed
        }
    ], recursive := true)
    FROM facts
    JOIN labels USING (injection_id)
    WHERE state = 'consumed' AND settled
),

judges AS (
    SELECT
        measure,
        {
            'positives': count(*) FILTER (truth),
            'read_positive': count(*) FILTER (truth AND hit),
            'negatives': count(*) FILTER (NOT truth),
            'read_negative': count(*) FILTER (NOT truth AND NOT hit)
        } AS judge
    FROM labelled
    WHERE hit IS NOT NULL AND truth IS NOT NULL
    GROUP BY measure
),

per_trace AS (
    SELECT
        agent,
        model,
        world,
        part,
        measure,
        trace,
        list(DISTINCT op) AS some_ops,
        list(DISTINCT measured_by) FILTER (of) AS some_measures,
        list(left_out_as) FILTER (fired AND left_out_as IS NOT NULL) AS some_left_out,
        count(*) FILTER (fired) AS k_fired,
        count(*) FILTER (of AND hit AND counts) AS k_hits,
        count(*) FILTER (of AND counts) AS k_cases,
        count(*) FILTER (open AND counts) AS k_unknown,
        count(*) FILTER (of AND hit AND counts_otherwise) AS k_other_hits,
        count(*) FILTER (of AND counts_otherwise) AS k_other_cases,
        count(*) FILTER (of AND by_budget) AS k_by_budget
    FROM measured
    GROUP BY agent, model, world, part, measure, trace
),

rates AS (
    SELECT
        agent,
        model,
        world,
        part,
        measure,
        list_sort(list_distinct(flatten(list(some_ops)))) AS ops,
        list(k_hits::DOUBLE) AS hit_list,
        list(k_cases::DOUBLE) AS case_list,
        list((k_cases + k_unknown)::DOUBLE) AS all_list,
        list((k_hits + k_unknown)::DOUBLE) AS most_list,
        unknown_bounds(sum(k_hits), sum(k_cases), sum(k_unknown)) AS bounds,
        mixed(flatten(list(some_measures))) AS not_alike,
        flatten(list(some_left_out)) AS left_out_list,
        sum(k_fired)::BIGINT AS fired,
        sum(k_by_budget)::BIGINT AS by_budget,
        sum(k_other_hits) / nullif(sum(k_other_cases), 0) AS other_rate,
        count(*) FILTER (sum(k_cases) > 0) OVER (PARTITION BY agent, model, world, measure)
            AS parts
    FROM per_trace
    GROUP BY agent, model, world, part, measure
),

bounded AS (
    SELECT
        *,
        1 - (1 - $confidence) / greatest(parts, 1) AS confidence,
        clustered_at(hit_list, case_list, 1 - (1 - $confidence) / greatest(parts, 1)) AS found,
        CASE
            WHEN bounds.unknown > 0
                THEN clustered_at(hit_list, all_list, 1 - (1 - $confidence) / greatest(parts, 1))
            ELSE found
        END AS against,
        CASE
            WHEN bounds.unknown > 0
                THEN clustered_at(most_list, all_list, 1 - (1 - $confidence) / greatest(parts, 1))
            ELSE found
        END AS in_favour
    FROM rates
),

gated AS (
    SELECT
        agent,
        model,
        world,
        part,
        ops,
        measure,
        found.hits::BIGINT AS hits,
        found.cases::BIGINT AS cases,
        found.clusters AS traces,
        found.n_eff AS n_eff,
        found.t AS t,
        found.rate AS rate,
        CASE
            WHEN not_alike IS NOT NULL OR found.lo IS NULL OR against.lo IS NULL THEN NULL
            WHEN parts > 1
                THEN least(
                    against.lo, exact_lo(against.rate * against.n_eff, against.n_eff, confidence)
                )
            ELSE against.lo
        END AS lo,
        CASE
            WHEN not_alike IS NOT NULL OR found.hi IS NULL OR in_favour.hi IS NULL THEN NULL
            WHEN parts > 1
                THEN greatest(
                    in_favour.hi,
                    exact_hi(in_favour.rate * in_favour.n_eff, in_favour.n_eff, confidence)
                )
            ELSE in_favour.hi
        END AS hi,
        bounds.unknown AS unknown,
        bounds.least AS least,
        bounds.most AS most,
        CASE WHEN not_alike IS NULL THEN found.lo END AS known_lo,
        CASE WHEN not_alike IS NULL THEN found.hi END AS known_hi,
        coalesce(not_alike, found.reason) AS reason,
        fired,
        coalesce(len(left_out_list), 0) AS left_out,
        list_mode(left_out_list) AS left_out_as,
        by_budget,
        CASE WHEN by_budget > 0 THEN other_rate END AS other_rate,
        parts,
        confidence,
        against,
        in_favour
    FROM bounded
),

judged_gates AS (
    SELECT
        gated.*,
        judge,
        behind_judge({'rate': rate, 'n_eff': n_eff, 't': t, 'lo': lo, 'hi': hi}, judge) AS behind,
        behind_judge(
            {'rate': against.rate, 'n_eff': against.n_eff, 't': against.t, 'lo': lo, 'hi': hi}, judge
        ).lo AS judged_lo,
        behind_judge(
            {'rate': in_favour.rate, 'n_eff': in_favour.n_eff, 't': in_favour.t, 'lo': lo, 'hi': hi},
            judge
        ).hi AS judged_hi
    FROM gated
    LEFT JOIN judges USING (measure)
)

SELECT
    * EXCLUDE (against, in_favour, judge, behind, judged_lo, judged_hi),
    CASE
        WHEN $labels IS NOT NULL AND measure != 'ends_right'
            THEN {
                'positives': coalesce(judge.positives, 0),
                'negatives': coalesce(judge.negatives, 0),
                'sensitivity': judge.read_positive / nullif(judge.positives, 0),
                'specificity': judge.read_negative / nullif(judge.negatives, 0),
                'rate': behind.rate,
                'lo': CASE WHEN lo IS NOT NULL THEN judged_lo END,
                'hi': CASE WHEN hi IS NOT NULL THEN judged_hi END
            }
    END AS judge_error
FROM judged_gates
ORDER BY agent, model, world, part, measure;
