-- How much does a rate move when complete traces are drawn again? Cluster bootstrap of one class.
-- default: class = "silent_wrong", op = null, model = null, draws = 2000, seed = 7
-- range: draws = 100..100000
--
-- se is the standard deviation of the rate over draws of as many traces, with replacement: a check
-- of the clustered interval by another method. lo and hi are those of the clustered rate, since the
-- percentiles of the draws are too narrow for few traces. A trace is drawn by the MD5 of seed, draw
-- and place, so that the seed gives the same answer with any version; DuckDB's hash() of several
-- numbers is too even to draw by. If all traces agree, every draw is the same and there is no se.
-- Another judge version, or another verifier of the same recordings, is another row (measured_by).
WITH per_trace AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        trace,
        count(*) FILTER (class = $class)::DOUBLE AS y,
        count(*)::DOUBLE AS n,
        row_number() OVER (PARTITION BY agent, model, world, measured_by ORDER BY trace) - 1 AS i,
        count(*) OVER (PARTITION BY agent, model, world, measured_by) AS clusters
    FROM judged_injections
    WHERE
        judged
        AND NOT sham
        AND ($op IS NULL OR op = $op)
        AND ($model IS NULL OR model = $model)
    GROUP BY agent, model, world, measured_by, trace
),

pooled AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        count(*) AS traces,
        sum(n)::BIGINT AS judged,
        clustered(list(y ORDER BY trace), list(n ORDER BY trace)) AS found
    FROM per_trace
    GROUP BY agent, model, world, measured_by
),

drawn AS (
    SELECT
        per_trace.agent,
        per_trace.model,
        per_trace.world,
        per_trace.measured_by,
        draw,
        md5_number_lower(concat_ws(' ', $seed, draw, per_trace.i)) % per_trace.clusters AS i
    FROM per_trace
    CROSS JOIN (SELECT unnest(range($draws::BIGINT)) AS draw)
),

again AS (
    SELECT
        drawn.agent,
        drawn.model,
        drawn.world,
        drawn.measured_by,
        drawn.draw,
        sum(per_trace.y) / sum(per_trace.n) AS rate
    FROM drawn
    JOIN per_trace
        ON
            drawn.i = per_trace.i
            AND drawn.agent IS NOT DISTINCT FROM per_trace.agent
            AND drawn.model IS NOT DISTINCT FROM per_trace.model
            AND drawn.world IS NOT DISTINCT FROM per_trace.world
            AND drawn.measured_by = per_trace.measured_by
    GROUP BY drawn.agent, drawn.model, drawn.world, drawn.measured_by, drawn.draw
),

spread AS (
    SELECT
        agent,
        model,
        world,
        measured_by,
        stddev_samp(rate ORDER BY draw) AS se
    FROM again
    GROUP BY agent, model, world, measured_by
)

SELECT
    pooled.agent,
    pooled.model,
    pooled.world,
    pooled.measured_by,
    $class AS class,
    pooled.judged,
    pooled.traces,
    pooled.found.rate AS rate,
    nullif(spread.se, 0) AS se,
    pooled.found.lo AS lo,
    pooled.found.hi AS hi,
    pooled.found.reason AS reason
FROM pooled
JOIN spread
    ON
        pooled.agent IS NOT DISTINCT FROM spread.agent
        AND pooled.model IS NOT DISTINCT FROM spread.model
        AND pooled.world IS NOT DISTINCT FROM spread.world
        AND pooled.measured_by = spread.measured_by
ORDER BY pooled.agent, pooled.model, pooled.world, pooled.measured_by;
