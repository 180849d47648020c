"""The headline queries over a store of over a million steps, compared with plain tables.

    python -m tests.bench.queries [MILLIONS ...]        default 1 and 10; 100 needs 3 GB

DuckDB generates the rows: runs of forty steps, four of five with one injection, five kinds of
fault, a thousand tasks; a tool call for each step. The store reads Parquet, as any store does; the
plain tables have only the queried columns, in a DuckDB file. polars reads the store's Parquet and
does less: it joins and counts for recovery, without an interval.
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl

from tests.bench.target import ROW, target
from traces.store.sql import build_sql_macros
from traces.store.trace_store import TraceStore

STEPS = 40
LIMITS = {1: 0.1, 10: 1.0, 100: 5.0}
"""Limits in seconds, by millions of steps."""
ROUNDS = 5
ROWS = {
    "trajectories": "'r' || i AS trajectory_id, 'a' AS agent, 'm' || i % 2 AS model,"
    " 't' || i % 1000 AS task, if(i % 5 = 0, 'clean', 'fault') AS condition, 'fresh' AS world,"
    " if(i % 5 > 0, 'p' || i % 1000, NULL) AS parent_id, if(i % 5 > 0, 'fork', 'record') AS source,"
    " 10 + hash(i + 9) % 31 AS n_steps, hash(i) % 10 < 6 AS passed, 'final' AS ended"
    " FROM range($runs) AS runs (i)",
    "injections": "'i' || i AS injection_id, 'r' || i AS trajectory_id, 3 AS step,"
    " 'op' || i % 8 AS op, 'http' AS place, 'once' AS persist, 'D' || i % 5 AS detect,"
    " hash(i + 7) % 10 > 0 AS consumed, if(hash(i + 7) % 10 = 0, 'absorbed', NULL)"
    " AS unreached_reason FROM range($runs) AS runs (i) WHERE i % 5 > 0",
    "outcomes": "'i' || i AS injection_id, 1 AS judge_version, ['recovered', 'masked',"
    " 'silent_wrong', 'crashed'][(1 + hash(i + 1) % 4)::BIGINT] AS class,"
    " hash(i + 2) % 2 = 0 AS noticed, true AS baseline_valid"
    " FROM range($runs) AS runs (i) WHERE i % 5 > 0",
    "tool_calls": "'r' || i // $steps AS trajectory_id, i % $steps AS step, 'tool' AS tool,"
    " hash(i) % 50 = 0 AS is_error FROM range($runs * $steps) AS calls (i)",
}
BARE = {
    "faults": "SELECT 'op' || i % 8 AS op, 'm' || i % 2 AS model, 'p' || i % 1000 AS trace,"
    " hash(i + 1) % 4 = 0 AS recovered, hash(i + 1) % 4 = 2 AS silent"
    " FROM range($runs) AS runs (i) WHERE i % 5 > 0 AND hash(i + 7) % 10 > 0",
    "clean_runs": "SELECT 'm' || i % 2 AS model, 10 + hash(i + 9) % 31 AS t,"
    " hash(i) % 10 >= 6 AS died FROM range($runs) AS runs (i) WHERE i % 5 = 0",
}
RECOVERY = """
SELECT op, model, clustered(list(y), list(n)), clustered(list(z), list(n)) FROM (
    SELECT op, model, trace, count(*)::DOUBLE AS n, count(*) FILTER (recovered)::DOUBLE AS y,
        count(*) FILTER (silent)::DOUBLE AS z
    FROM faults GROUP BY op, model, trace
) GROUP BY op, model
"""
KAPLAN_MEIER = """
SELECT model, t, product(1 - d / y) OVER (PARTITION BY model ORDER BY t) FROM (
    SELECT model, t, d, sum(m) OVER (PARTITION BY model ORDER BY t DESC) AS y FROM (
        SELECT model, t, count(*) AS m, count(*) FILTER (died) AS d
        FROM clean_runs GROUP BY model, t
    )
)
"""
QUERIES = {
    "recovery with intervals": ("FROM recovery", RECOVERY),
    "Kaplan-Meier": ("FROM kaplan_meier", KAPLAN_MEIER),
}


def main(words: list[str]) -> None:
    for millions in [int(word) for word in words] or [1, 10]:
        with tempfile.TemporaryDirectory(prefix="stumble-bench-") as folder:
            runs = millions * 1_000_000 // STEPS
            store, bare = stored(Path(folder), runs), tables(Path(folder), runs)
            with store.connect() as connection, bare:
                for name, (view, plain) in QUERIES.items():
                    here, there = asked(connection, view), asked(bare, plain)
                    said = f"{name}, {millions},000,000 steps"
                    target(said, here[0], "s", most=LIMITS[millions])
                    target(f"{said}: CPU", here[1] / there[1], "x bare tables", most=2)
                ours, theirs = asked(connection, "FROM recovery")[0], counting(store.root)[0]
                said = f"recovery, {millions},000,000 steps: seconds"
                print(f"{ROW}{said} | {ours / theirs:.3g} | no target | x polars | beside |")
    # Kilobytes on Linux.
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    target("memory of all of it, making the rows included", used, "GB", most=2)


def stored(folder: Path, runs: int) -> TraceStore:
    """Return a store with the rows in one segment, as if one campaign had written them."""
    store = TraceStore(folder / "store")
    with duckdb.connect() as maker:
        maker.execute("SET memory_limit = '1GB'")
        maker.execute(f"SET temp_directory = '{folder}'")
        for name, select in ROWS.items():
            where = folder / "store" / "index" / name
            where.mkdir(parents=True, exist_ok=True)
            maker.execute(f"COPY (SELECT {filled(select, runs)}) TO '{where}/made.parquet'")
    return store


def tables(folder: Path, runs: int) -> duckdb.DuckDBPyConnection:
    """Return the same data as flat tables of a DuckDB file."""
    connection = duckdb.connect(folder / "bare.duckdb")
    connection.execute("SET memory_limit = '1GB'")
    connection.execute(build_sql_macros())
    for name, select in BARE.items():
        connection.execute(f"CREATE TABLE {name} AS {filled(select, runs)}")
    return connection


def filled(select: str, runs: int) -> str:
    return select.replace("$runs", str(runs)).replace("$steps", str(STEPS))


def with_polars(root: Path) -> pl.LazyFrame:
    """Return the counts behind recovery and silent failure, per operator, model and trace."""
    runs, struck, verdicts = (
        pl.scan_parquet(root / "index" / name / "made.parquet")
        for name in ("trajectories", "injections", "outcomes")
    )
    newest = verdicts.sort("judge_version").unique("injection_id", keep="last")
    return (
        struck.filter("consumed")
        .join(runs, on="trajectory_id")
        .join(newest.filter("baseline_valid"), on="injection_id")
        .group_by("op", "agent", "model", "world", "parent_id")
        .agg(
            pl.len(),
            (pl.col("class") == "recovered").sum().alias("recovered"),
            (pl.col("class") == "silent_wrong").sum().alias("silent"),
        )
    )


def counting(root: Path) -> tuple[float, float]:
    """Return the time that polars takes for the counts."""
    return timed(lambda: with_polars(root).collect())


def asked(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[float, float]:
    """Return the minimum wall and processor seconds of a few rounds."""
    return timed(lambda: connection.execute(query).fetchall())


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the minimum wall and processor seconds of a few rounds."""
    walls, cpus = list[float](), list[float]()
    for _ in range(ROUNDS):
        began, used = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - began)
        cpus.append(time.process_time() - used)
    return min(walls), min(cpus)


if __name__ == "__main__":
    main(sys.argv[1:])
