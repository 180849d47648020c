"""Every view and question on Spark beside DuckDB, over the same Parquet.

    python -m tests.bench.spark STEPS [--on MASTER] [--said FILE] [NAME ...]
    python -m tests.bench.spark 1e7 --on cluster --said rows.md

`cluster` starts a standalone master and two workers of one core. The rows are made as those of
tests/bench/queries.py, with campaigns, steps, times and tokens: four of five runs are forks, of
one of two campaigns. Prints a row of a table for each name: the number of rows, whether they agree
to 1e-9, and the seconds that each took, plan included. The rows of a view are computed once, by the
first name that reads it; with `--alone` by each, as `stumble sql` does. `--said` adds the rows to a
file, and leaves out the names that it has: so a run that was stopped goes on. Needs the extra
`spark`.
"""

import argparse
import math
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from stumble.errors import HarnessError
from stumble.spark.session import SparkTables, open_spark
from stumble.spark.translate import open_translator
from tests.support.spark_cluster import spark_cluster
from traces.store.definitions_file import load_definitions
from traces.store.schema import SCHEMAS
from traces.store.sql import VIEWS, SqlValue, bind_question, list_questions

STEPS = 40
TOLERANCE = 1e-9
GIVEN: Mapping[str, Mapping[str, SqlValue]] = {
    "compare": {"a": "c0", "b": "c1"},
    "flips": {"a": "c0", "b": "c1"},
    "bench": {"weights": '{"op1 once": 2, "op3 once": 1}'},
    "survival_table": {"e": 0.02, "e_quiet": 0.01},
}
"""Arguments without which a question has no rows."""
ROWS = {
    "trajectories": "'r' || i AS trajectory_id, 'a' AS agent, 'm' || i % 2 AS model,"
    " 't' || i % 1000 AS task, CASE WHEN i % 5 = 0 THEN 'clean' WHEN i % 8 = 7 THEN 'sham'"
    " ELSE 'fault' END AS condition, 'fresh' AS world,"
    " if(i % 5 > 0, 'p' || i % 1000, NULL) AS parent_id, if(i % 5 > 0, 'fork', 'record') AS source,"
    " if(i % 5 > 0, 'c' || i // 10000 % 2, NULL) AS campaign,"
    " if(i % 5 > 0, 'cell' || i % 8 || '/' || i // 1000 % 10, NULL) AS cell,"
    " TIMESTAMP '2026-11-01' + to_seconds(i % 2000000) AS recorded_at, 'v' AS verifier,"
    " (10 + hash(i + 9) % 31)::BIGINT AS n_steps, hash(i) % 10 < 6 AS passed, 'final' AS ended,"
    " (hash(i + 3) % 1000) / 10.0 AS seconds, (hash(i + 4) % 10000)::BIGINT AS tokens,"
    " (hash(i + 5) % 1000) / 1000.0 AS cost_usd FROM range($runs) AS runs (i)",
    "injections": "'i' || i AS injection_id, 'r' || i AS trajectory_id, 3 AS step, i AS seq,"
    " 'op' || i % 8 AS op, 'V' AS family, 'http' AS place, 'once' AS persist,"
    " 'D' || i % 5 AS detect, 'tool' AS tool, '{}' AS params, i % 8 = 7 AS sham,"
    " hash(i + 7) % 10 > 0 AS consumed, if(hash(i + 7) % 10 = 0, 'absorbed', NULL)"
    " AS unreached_reason FROM range($runs) AS runs (i) WHERE i % 5 > 0",
    "outcomes": "'i' || i AS injection_id, 4 AS judge_version, ['r' || (i - i % 5)] AS twins,"
    " ['recovered', 'masked', 'silent_wrong', 'crashed'][(1 + hash(i + 1) % 4)::BIGINT] AS class,"
    " hash(i + 2) % 2 = 0 AS noticed, hash(i + 1) % 4 < 2 AS passed, true AS baseline_valid,"
    " true AS noticeable, true AS changes_what_model_saw, 5 AS noticed_step"
    " FROM range($runs) AS runs (i) WHERE i % 5 > 0",
    "tool_calls": "'r' || i // $steps AS trajectory_id, i % $steps AS step, i % $steps AS seq,"
    " 'tool' || i % 3 AS tool, hash(i) % 50 = 0 AS is_error, false AS faulted,"
    " (hash(i + 1) % 100) / 10.0 AS duration FROM range($runs * $steps) AS calls (i)",
    "steps": "'r' || i // $steps AS trajectory_id, i % $steps AS step, 'agent' AS source,"
    " 'm' || i // $steps % 2 AS model FROM range($runs * $steps) AS steps (i)",
}


def write_tables(folder: Path, runs: int) -> None:
    """Write the relations of so many runs of forty steps, as `stumble export` lays them out."""
    with duckdb.connect() as maker:
        maker.execute("SET memory_limit = '1GB'")
        maker.execute(f"SET temp_directory = '{folder}/spilled'")
        for name, select in ROWS.items():
            part = folder / name / "run_source=made"
            part.mkdir(parents=True)
            query = select.replace("$runs", str(runs)).replace("$steps", str(STEPS))
            maker.register("empty", SCHEMAS[name].empty_table())
            maker.execute(
                f"COPY (FROM empty UNION ALL BY NAME SELECT {query}) TO '{part}/part.parquet'"
                " (COMPRESSION zstd, ROW_GROUP_SIZE 500000)"
            )


def open_duckdb(folder: Path) -> duckdb.DuckDBPyConnection:
    """Return DuckDB's views over the tables of a folder."""
    connection = duckdb.connect()
    load_definitions(connection)
    for name, schema in SCHEMAS.items():
        if (folder / name).exists():
            columns = ", ".join(f'"{column}"' for column in schema.names)
            connection.execute(
                f'CREATE OR REPLACE VIEW "{name}" AS SELECT {columns}'
                f" FROM read_parquet('{folder}/{name}/*/*.parquet', hive_partitioning = true)"
            )
    return connection


def list_queries() -> dict[str, tuple[str, Mapping[str, SqlValue] | None]]:
    """Return the text and the default values of every question and view, by name."""
    asked = dict[str, tuple[str, Mapping[str, SqlValue] | None]]()
    for name in VIEWS:
        asked[f"view {name}"] = (f'FROM "{name}"', None)
    for each in list_questions():
        asked[each.name] = bind_question(each.name, **GIVEN.get(each.name, {}))
    return asked


def differ(here: Sequence[tuple[object, ...]], there: Sequence[tuple[object, ...]]) -> str | None:
    """Return how two answers differ, in whatever order their rows are; None if they agree."""
    if len(here) != len(there):
        return f"{len(here)} and {len(there)} rows"
    for a, b in zip(_sort_rows(here), _sort_rows(there), strict=True):
        for x, y in zip(a, b, strict=True):
            if not _agree(x, y):
                return f"{x!r} and {y!r}"[:200]
    return None


def _agree(a: object, b: object) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float | Decimal) and isinstance(b, int | float | Decimal):
        x, y = float(a), float(b)
        near = abs(x - y) <= TOLERANCE * max(1.0, abs(x), abs(y))
        return x == y or near or (math.isnan(x) and math.isnan(y))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_agree(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_agree, a, b))
    return a == b


def _sort_rows(rows: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Sort by the first column if it names each row, else by all."""
    if len({_sort_key(row[0]) for row in rows}) == len(rows):
        return sorted(rows, key=lambda row: _sort_key(row[0]))
    return sorted(rows, key=_sort_key)


def _sort_key(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float | Decimal):
        return f"{float(value):.7g}"
    if isinstance(value, dict):
        value = list(value.values())
    return "|".join(map(_sort_key, value)) if isinstance(value, list | tuple) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", type=float)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--on", default="local[2]")
    parser.add_argument("--said", type=Path)
    parser.add_argument("--alone", action="store_true", help="plan each query with its views")
    parser.add_argument("--seconds", type=float, default=300.0, help="limit of one query")
    parser.add_argument("--memory", type=float, default=2.0, help="GB of the driver and a worker")
    given = parser.parse_intermixed_args()
    steps = int(given.steps)
    with (
        tempfile.TemporaryDirectory(prefix="stumble-bench-") as name,
        _open_master(given.on, Path(name)) as master,
        open_spark(master, memory=given.memory, seconds=0) as session,
    ):
        folder = Path(name) / "tables"
        write_tables(folder, steps // STEPS)
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
        print(f"{steps:,} steps, {size:,} bytes of Parquet, {given.on}", flush=True)
        tables = SparkTables(session, open_translator(), keep=not given.alone)
        tables.add_relations(str(folder))
        done = given.said.read_text() if given.said and given.said.exists() else ""
        with open_duckdb(folder) as connection:
            for said, (text, values) in list_queries().items():
                wanted = not given.names or said.removeprefix("view ") in given.names
                if not wanted or f"| {said} |" in done:
                    continue
                with _limit(session, connection, given.seconds):
                    row = _compare(said, text, values, tables, connection)
                print(row, flush=True)
                if given.said:
                    with given.said.open("a") as file:
                        file.write(row + "\n")


@contextmanager
def _open_master(name: str, folder: Path) -> Iterator[str]:
    if name != "cluster":
        yield name
        return
    import pyspark

    with spark_cluster(Path(pyspark.__file__).parent.parent, folder, 2, memory="3g") as address:
        yield address


@contextmanager
def _limit(session: Any, connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    def stop() -> None:
        connection.interrupt()
        session.sparkContext.cancelAllJobs()

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _compare(
    said: str,
    text: str,
    values: Mapping[str, SqlValue] | None,
    tables: SparkTables,
    connection: duckdb.DuckDBPyConnection,
) -> str:
    began = time.perf_counter()
    try:
        here = connection.execute(text, dict(values) if values else None).fetchall()
    except duckdb.Error as error:
        return f"| {said} | | DuckDB: {str(error).splitlines()[0][:200]} | | |"
    half = time.perf_counter()
    try:
        there = tables.run(text, values).rows
        end = time.perf_counter()
        difference = differ(here, there)
    except (ValueError, HarnessError) as error:
        end = time.perf_counter()
        difference = str(error).splitlines()[0][:200]
    seconds = f"{half - began:.1f} | {end - half:.1f}"
    return f"| {said} | {len(here)} | {difference or 'agrees'} | {seconds} |"


if __name__ == "__main__":
    main()
