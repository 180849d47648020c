"""A DuckDB file of all SQL macros and views over empty relations, made once for each user.

To create the views takes two seconds of processor time, since DuckDB expands every macro in each of
them; a copy with other relations under the same views takes a twentieth of a second. The file lies
in `$XDG_CACHE_HOME/stumble` (`~/.cache/stumble`), is named by what it was made of, and may be
removed at any time.
"""

import functools
import hashlib
import os
import tempfile
from pathlib import Path

import duckdb

from traces.store.schema import SCHEMAS
from traces.store.sql import build_sql_definitions

OLDEST_CLIENT: dict[str, str | bool | int | float | list[str]] = {
    "storage_compatibility_version": "v1.0.0"
}
"""The form of a database file that DuckDB's clients can read since this version."""


@functools.cache
def compute_definitions_hash() -> str:
    """Return a hash of DuckDB's version, the relations' columns and the text of all definitions."""
    columns = "\n".join(f"{name}\n{schema}" for name, schema in SCHEMAS.items())
    text = f"{duckdb.__version__}\n{OLDEST_CLIENT}\n{columns}\n{build_sql_definitions()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_definitions(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all macros, and all views over empty relations, in the current database.

    A relation is a view of no rows then, to be replaced by another view, or dropped for a table.
    """
    try:
        connection.execute(f"ATTACH {_quote(_prepare_cached())} AS definitions (READ_ONLY)")
    except (OSError, RuntimeError, duckdb.Error):  # no home, or a full, read-only or damaged one
        _create_definitions(connection)
        return
    [(database,)] = connection.execute("SELECT current_database()").fetchall()
    connection.execute(f'COPY FROM DATABASE definitions TO "{database}"')
    connection.execute("DETACH definitions")


def _prepare_cached() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    cached = Path(base, "stumble", f"sql-{compute_definitions_hash()}.duckdb")
    if not cached.exists():
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".sql-", dir=cached.parent) as folder:
            built = Path(folder, cached.name)
            with duckdb.connect(built) as connection:
                _create_definitions(connection)
                # Closing would do it too, but raises nothing if the disk is full.
                connection.execute("CHECKPOINT")
            built.replace(cached)
    return cached


def _create_definitions(connection: duckdb.DuckDBPyConnection) -> None:
    for name, schema in SCHEMAS.items():
        empty = connection.from_arrow(schema.empty_table())
        nulls = (
            f'NULL::{kind} AS "{column}"'
            for column, kind in zip(empty.columns, empty.types, strict=True)
        )
        connection.execute(f'CREATE VIEW "{name}" AS SELECT {", ".join(nulls)} WHERE false')
    connection.execute(build_sql_definitions())


def _quote(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
