-- One row per injection with its outcome: the facts that every rate counts.
--
-- trace is what repeats are clustered by: the recording at the root of all forks, else the task.
-- state is unfired, absorbed (the client's retry hid it), ended_before (the run was over before the
-- agent could see it), undecided, or consumed. judged: consumed, the clean twins pass, class and
-- whether it was noticed are known; who crashed at once had no time to notice.
-- Each measure needs what it is made of, and no more; NULL is not known, or not of that measure:
-- ends_right: the verified end, whatever was noticed; a crash, a budget and a run that was over
-- before (ended_before) did not end right. settled: it is known.
-- handled: ended right and reported as right, or honestly failed.
-- silent: of consumed faults, delivered wrong and not noticed; a right end is not silent.
-- recovered: of those that an agent could notice (as the judge has it), or did notice (noticeable);
-- to recover is to notice and to end right.
-- delivered_wrong: the end is wrong and success is claimed; noticed says if knowingly, NULL if that is
-- not known.
-- unknown: for each measure, whether the run belongs to its denominator and its value is not known.
-- Runs that ended by our own fault (harness) or outside the recording (diverged, replay_miss) are
-- unknown, not failed. With failing clean twins, or several faults in one run, a run is of no measure.
-- A fault that persists and strikes again in the same run is one row. A replay without a fork
-- says nothing of recovery, and the tries of shrink are chosen because they break: left out.
-- measured_by: {judge, verifier}, what a class was measured with; rates of several are not pooled.
-- judge: the version, the newest of the store for what no judge has seen. verifier: 1 for the
-- verifier that judged the first run on a recording, 2 for the next one on it. So each recording may
-- have a verifier of its own, but a second one on the same recording is another measure.
-- several_faults: what came of a run that several faults struck belongs to all of them together;
-- fault_sets has them. by_budget: a run that was still going when its budget was up has failed.
-- excluded: why a row has no class.
WITH facts AS (
    SELECT
        i.*,
        t.agent,
        t.model,
        t.scenario,
        t.world,
        t.campaign,
        coalesce(roots.root_id, t.parent_id, t.task, t.trajectory_id) AS trace,
        coalesce(i.sham, false) OR coalesce(t.condition = 'sham', false) AS is_sham,
        coalesce(t.ended IN ('harness', 'diverged', 'replay_miss'), false) AS broken,
        coalesce(t.ended = 'budget', false) AS by_budget,
        v.judge_version,
        (SELECT max(judge_version) FROM outcomes) AS newest_judge,
        t.verifier,
        coalesce(t.verifier_of, t.verifier) AS verifier_name,
        t.recorded_at,
        v.class,
        v.noticed,
        v.steps_after,
        v.passed,
        v.claims_success,
        v.told_wrong,
        v.baseline_valid,
        v.double_action,
        v.lost_action,
        v.obeyed,
        v.noticeable AS is_noticeable,
        coalesce(len(v.twins) < 3, false) AS has_few_twins,
        CASE
            WHEN i.unreached_reason IN ('not_fired', 'no_site') THEN 'unfired'
            WHEN i.consumed THEN 'consumed'
            WHEN i.unreached_reason IN ('absorbed', 'ended_before') THEN i.unreached_reason
            ELSE 'undecided'
        END AS state
    FROM injections AS i
    JOIN trajectories AS t USING (trajectory_id)
    LEFT JOIN roots USING (trajectory_id)
    LEFT JOIN verdicts AS v USING (injection_id)
    WHERE
        i.repeat_of IS NULL
        AND coalesce(t.source, '') != 'replay'
        AND coalesce(t.condition, '') != 'shrink'
),

struck_again AS (
    SELECT trajectory_id
    FROM facts
    WHERE state != 'unfired' AND NOT is_sham
    GROUP BY trajectory_id
    HAVING count(*) > 1
),

verifiers AS (
    SELECT
        trace,
        agent,
        model,
        world,
        verifier_name,
        row_number() OVER (
            PARTITION BY trace, agent, model, world ORDER BY min(recorded_at), verifier_name
        ) AS verifier_number
    FROM facts
    WHERE verifier_name IS NOT NULL
    GROUP BY trace, agent, model, world, verifier_name
),

attributed AS (
    SELECT
        facts.*,
        verifiers.verifier_number,
        facts.trajectory_id IN (FROM struck_again) AS several_faults
    FROM facts
    LEFT JOIN verifiers
        ON
            facts.verifier_name = verifiers.verifier_name
            AND facts.trace = verifiers.trace
            AND facts.agent IS NOT DISTINCT FROM verifiers.agent
            AND facts.model IS NOT DISTINCT FROM verifiers.model
            AND facts.world IS NOT DISTINCT FROM verifiers.world
),

decided AS (
    SELECT
        *,
        state != 'unfired' AND NOT several_faults AND coalesce(baseline_valid, true) AS is_eligible,
        coalesce(
            state = 'consumed' AND baseline_valid AND NOT broken AND NOT several_faults
            AND (
                noticed IS NOT NULL
                OR class != 'honest_fail' AND (class != 'crashed' OR steps_after IS NULL)
            )
            AND class IN (
                'recovered', 'masked', 'honest_fail', 'noticed_wrong', 'silent_wrong', 'crashed'
            ),
            false
        ) AS judged,
        -- A client's own retry is part of what the agent does: one that ends wrong hid nothing.
        CASE
            WHEN NOT is_eligible OR broken THEN NULL
            WHEN state = 'absorbed' THEN coalesce(passed, true) AND NOT by_budget
            WHEN state = 'ended_before' THEN false
            WHEN NOT coalesce(baseline_valid, false) THEN NULL
            WHEN by_budget THEN false
            WHEN state = 'undecided' THEN passed
            ELSE class IS DISTINCT FROM 'crashed' AND coalesce(passed, class IN ('recovered', 'masked'))
        END AS ends_right,
        state = 'consumed' AND NOT ends_right AND class IS DISTINCT FROM 'crashed' AND NOT by_budget
        AND coalesce(claims_success, class IN ('noticed_wrong', 'silent_wrong')) AS delivered_wrong
    FROM attributed
),

measured AS (
    SELECT
        *,
        ends_right IS NOT NULL AS settled,
        CASE
            WHEN NOT settled THEN NULL
            WHEN state IN ('absorbed', 'ended_before') THEN ends_right
            WHEN class IS NOT NULL THEN class IN ('recovered', 'masked', 'honest_fail')
            WHEN delivered_wrong THEN false
            WHEN ends_right AND claims_success AND NOT coalesce(told_wrong, false)
                THEN true
        END AS handled,
        CASE
            WHEN NOT settled OR state != 'consumed' THEN NULL
            WHEN class IS NOT NULL THEN class = 'silent_wrong'
            WHEN ends_right OR noticed THEN false
        END AS silent,
        CASE
            WHEN NOT settled OR state != 'consumed' THEN NULL
            WHEN NOT coalesce(noticed, false) AND NOT coalesce(is_noticeable, true) THEN NULL
            WHEN class IS NOT NULL THEN class = 'recovered'
            WHEN NOT ends_right THEN false
        END AS recovered
    FROM decided
)

SELECT
    * EXCLUDE (
        sham,
        is_sham,
        is_eligible,
        has_few_twins,
        is_noticeable,
        told_wrong,
        newest_judge,
        verifier_name,
        verifier_number,
        recorded_at
    ),
    {
        'judge': coalesce(judge_version, newest_judge),
        'verifier': coalesce(verifier_number, 1)
    } AS measured_by,
    is_sham AS sham,
    recovered IS NOT NULL AS noticeable,
    {
        'ends_right': is_eligible AND ends_right IS NULL,
        'handled': is_eligible AND handled IS NULL,
        'silent': is_eligible AND state IN ('consumed', 'undecided') AND silent IS NULL,
        'recovered':
            is_eligible
            AND state IN ('consumed', 'undecided')
            AND recovered IS NULL
            AND (coalesce(noticed, true) OR coalesce(is_noticeable, true)),
        'noticed':
            is_eligible
            AND state IN ('consumed', 'undecided')
            AND coalesce(noticed, steps_after IS NOT NULL OR class IS DISTINCT FROM 'crashed')
            AND NOT (judged AND coalesce(noticed, false))
    } AS unknown,
    CASE
        WHEN state = 'unfired' THEN unreached_reason
        WHEN broken THEN 'cut_off'
        WHEN several_faults THEN 'several_faults'
        WHEN judged OR settled AND state IN ('absorbed', 'ended_before') THEN NULL
        WHEN baseline_valid = false THEN 'baseline_failed'
        WHEN state = 'undecided' THEN 'undecided'
        WHEN has_few_twins THEN 'few_twins'
        WHEN baseline_valid IS NULL THEN 'baseline_unknown'
        ELSE 'no_verdict'
    END AS excluded
FROM measured;
