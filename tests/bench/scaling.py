"""Every view and question in DuckDB, by the number of steps.

    python -m tests.bench.scaling STEPS [--tables FOLDER] [--said FILE] [NAME ...]
    python -m tests.bench.scaling 1e8 --tables /var/tmp/e8 --said e8.md

The rows are those of tests/bench/spark.py. Prints for each name the number of rows of the answer,
and the seconds of processor time and of the clock; at the end the peak memory of the process.
DuckDB has 4 GB, and may write to disk beyond. `--tables` keeps the Parquet in a folder for the next
call, `--said` adds the rows to a file and leaves out the names that it has.
"""

import argparse
import resource
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from tests.bench.spark import STEPS, list_queries, open_duckdb, write_tables
from traces.store.sql import SqlValue

BATCH = 10_000


def time_query(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    values: Mapping[str, SqlValue] | None,
    limit: float,
) -> str:
    """Return rows, processor seconds and seconds of a query as cells of a table."""
    timer = threading.Timer(limit, connection.interrupt)
    timer.daemon = True
    timer.start()
    began, used = time.perf_counter(), time.process_time()
    rows = 0
    try:
        connection.execute(text, dict(values) if values else None)
        while batch := connection.fetchmany(BATCH):
            rows += len(batch)
    except duckdb.InterruptException:
        return f"| no answer in {limit:.0f} s | |"
    except duckdb.OutOfMemoryException:
        return "| out of memory | |"
    finally:
        timer.cancel()
    return f"{rows:,} | {time.process_time() - used:.2f} | {time.perf_counter() - began:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", type=float)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--said", type=Path)
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of one query")
    given = parser.parse_intermixed_args()
    done = given.said.read_text() if given.said and given.said.exists() else ""
    with TemporaryDirectory(prefix="stumble-bench-") as name:
        folder = given.tables or Path(name) / "tables"
        if not folder.exists():
            write_tables(folder, int(given.steps) // STEPS)
        with open_duckdb(folder) as connection:
            connection.execute("SET memory_limit = '4GB'")
            connection.execute(f"SET temp_directory = '{name}/spilled'")
            for asked, (text, values) in list_queries().items():
                if given.names and asked.removeprefix("view ") not in given.names:
                    continue
                if f"| {asked} | {given.steps:.0e} |" in done:
                    continue
                cells = time_query(connection, text, values, given.seconds)
                row = f"| {asked} | {given.steps:.0e} | {cells}"
                print(row, flush=True)
                if given.said:
                    with given.said.open("a") as file:
                        file.write(row + "\n")
    # Kilobytes on Linux.
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
