-- One row per injection with its outcome: the facts that every rate counts.
--
-- trace is what repeats are clustered by: the recording at the root of all forks, else the task.
-- state is unfired, absorbed (the client's retry hid it), ended_before (the run was over before the
-- agent could see it), undecided, or consumed. judged: consumed, the clean twins pass, class and
-- whether it was noticed are known (a crash and an honest failure are told without the latter, but
-- would then stand for all others, which are not); who crashed at once had no time to notice.
-- settled: judged, or it never reached the agent. Runs that ended by our own fault (harness) or
-- outside the recording (diverged, replay_miss) are neither: censored, not failed.
-- A fault that persists and strikes again in the same run is one row. A replay without a fork
-- says nothing of recovery, and the tries of shrink are chosen because they break: left out.
-- handled: absorbed and not ended wrong, recovered, masked or honestly failed, of the settled;
-- ends_right: the same without honest failures, so that the end state is right. noticeable: of the
-- judged, those that an agent could notice, as the judge has it, or did notice; only they can be
-- recovered from, as to recover is to notice and to end right.
-- measured_by: {judge, verifier}, what a class was measured with; rates of several are not pooled.
-- judge: the version, the newest of the store for what no judge has seen. verifier: 1 for the
-- verifier that judged the first run on a recording, 2 for the next one on it. So each recording may
-- have a verifier of its own, but a second one on the same recording is another measure.
-- several_faults: what came of a run that several faults struck belongs to all of them together,
-- so that none of its rows is judged or settled; fault_sets has them. by_budget: a run that was
-- still going when its budget was up has failed. excluded: why a row is not settled.
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
        v.baseline_valid,
        v.double_action,
        v.lost_action,
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
)

SELECT
    * EXCLUDE (
        sham,
        is_sham,
        has_few_twins,
        is_noticeable,
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
    judged AND (coalesce(noticed, false) OR coalesce(is_noticeable, true)) AS noticeable,
    judged OR (
        state IN ('absorbed', 'ended_before')
        AND NOT broken
        AND NOT several_faults
        AND coalesce(baseline_valid, true)
    ) AS settled,
    -- A client's own retry is part of what the agent does: one that ends wrong hid nothing.
    settled AND coalesce(
        state = 'absorbed' AND coalesce(passed, true) AND NOT by_budget
        OR judged AND class IN ('recovered', 'masked'),
        false
    ) AS ends_right,
    ends_right OR judged AND class = 'honest_fail' AS handled,
    CASE
        WHEN state = 'unfired' THEN unreached_reason
        WHEN broken THEN 'cut_off'
        WHEN several_faults THEN 'several_faults'
        WHEN settled THEN NULL
        WHEN baseline_valid = false THEN 'baseline_failed'
        WHEN state = 'undecided' THEN 'undecided'
        WHEN has_few_twins THEN 'few_twins'
        WHEN baseline_valid IS NULL THEN 'baseline_unknown'
        ELSE 'no_verdict'
    END AS excluded
FROM attributed;
