-- What were the results of forks, which sources answered in them, and what did they save? Newest first.
-- default: n = 50
-- range: n = 0..
--
-- One row per continuation, with the class of its first injection. saved: what the tape answered and
-- nobody had to pay for; NULL where the tokens or the price of one of these calls is not known.
WITH calls AS (
    SELECT
        s.trajectory_id,
        x.answered_by = 'recorded' AS saved,
        u.prompt_tokens + u.completion_tokens AS tokens,
        u.cost_usd
    FROM steps AS s
    JOIN exchanges AS x ON x.trajectory_id = s.trajectory_id AND x.seq = s.seqs[-1]
    LEFT JOIN usage AS u ON u.trajectory_id = x.trajectory_id AND u.seq = x.seq
    WHERE s.source = 'agent'
),

savings AS (
    SELECT
        trajectory_id,
        count(*) FILTER (saved) AS model_calls_saved,
        count(*) FILTER (NOT saved) AS model_calls_made,
        CASE WHEN count(*) FILTER (saved AND tokens IS NULL) = 0
            THEN coalesce(sum(tokens) FILTER (saved), 0)
        END AS tokens_saved,
        CASE WHEN count(*) FILTER (saved AND cost_usd IS NULL) = 0
            THEN coalesce(sum(cost_usd) FILTER (saved), 0)
        END AS usd_saved
    FROM calls
    GROUP BY trajectory_id
),

answers AS (
    SELECT
        trajectory_id,
        count(*) FILTER (answered_by = 'live') AS live,
        count(*) FILTER (answered_by = 'recorded') AS recorded,
        count(*) FILTER (answered_by = 'simulated') AS simulated,
        count(*) FILTER (answered_by = 'fault') AS fault
    FROM exchanges
    GROUP BY trajectory_id
),

ends AS (
    SELECT
        i.trajectory_id,
        first(v.class ORDER BY i.seq, i.injection_id) AS class
    FROM injections AS i
    JOIN verdicts AS v USING (injection_id)
    GROUP BY i.trajectory_id
)

SELECT
    t.trajectory_id,
    t.parent_id,
    t.forked_at,
    t.condition,
    t.world,
    t.ended,
    t.passed,
    ends.class,
    answers.live,
    answers.recorded,
    answers.simulated,
    answers.fault,
    t.cascades,
    t.drifted,
    t.substituted,
    t.renamed,
    t.remade,
    savings.model_calls_saved,
    savings.model_calls_made,
    savings.tokens_saved,
    savings.usd_saved
FROM trajectories AS t
LEFT JOIN savings USING (trajectory_id)
LEFT JOIN answers USING (trajectory_id)
LEFT JOIN ends USING (trajectory_id)
WHERE t.source = 'fork'
ORDER BY t.recorded_at DESC NULLS LAST, t.trajectory_id
LIMIT $n;
