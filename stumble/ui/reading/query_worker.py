"""The process that runs one statement of the SQL page: the same guard as `stumble sql`.

It reads one JSON object (store, sql, values, seconds, rows) and prints one (names, rows, more; or
error). Before the statement it gives up the right to change any file, and has limits of memory and
time.
"""

import json
import math
import sys
from datetime import date, datetime
from pathlib import Path

import duckdb

from stumble.store.query import QueryLimits, restrict_process, run_query
from traces.store.trace_store import TraceStore

MEMORY_GB = 1.0


def run_worker() -> None:
    """Answer the request on standard input."""
    document = json.loads(sys.stdin.buffer.read())
    limits = QueryLimits(memory=MEMORY_GB, seconds=float(document["seconds"]))
    most = int(document["rows"])
    store = TraceStore(Path(document["store"]))
    restrict_process(limits)

    def fetch(answer: duckdb.DuckDBPyConnection) -> dict[str, object]:
        names = [column[0] for column in answer.description or ()]
        rows = answer.fetchmany(most + 1)
        shown = [[_to_json(value) for value in row] for row in rows[:most]]
        return {"names": names, "rows": shown, "more": len(rows) > most}

    try:
        result = run_query(store, document["sql"], document["values"], limits, fetch)
    except (ValueError, MemoryError) as error:
        result = {"error": str(error) or "the result needs too much memory; narrow the query"}
    print(json.dumps(result))


def _to_json(value: object) -> object:
    """Return numbers, truth values and NULL as they are, all else as text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime | date):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return json.dumps(value, default=str, ensure_ascii=False)


if __name__ == "__main__":
    run_worker()
