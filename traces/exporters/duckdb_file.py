"""Export the store as one DuckDB file: its relations as tables, and every view and macro of it.

Nothing in it names another file, so that it can be sent, and any client since DuckDB 1.0 opens it.
Clients show what its columns are: each has a comment.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from traces.exporters.parquet import select_rows
from traces.store.definitions_file import OLDEST_CLIENT
from traces.store.schema import SCHEMAS
from traces.store.sql import build_sql_comments, build_sql_definitions


def write_database(
    connection: duckdb.DuckDBPyConnection, target: Path, runs: Sequence[str] | None = None
) -> dict[str, int]:
    """Write all rows, or those of these runs, to a new file; return the number per relation."""
    aside = target.with_name(f".{target.name}.part")
    aside.unlink(missing_ok=True)
    counts = dict[str, int]()
    try:
        with duckdb.connect(aside, config=OLDEST_CLIENT) as database:
            for relation, schema in SCHEMAS.items():
                rows = select_rows(connection, relation, runs)
                database.register("rows", rows.cast(schema))
                database.execute(f'CREATE TABLE "{relation}" AS SELECT * FROM rows')
                database.unregister("rows")
                counts[relation] = rows.num_rows
            database.execute(build_sql_definitions())
            database.execute(build_sql_comments())
            database.execute("CHECKPOINT")
        aside.rename(target)
    finally:
        aside.unlink(missing_ok=True)
    return counts
