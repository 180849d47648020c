"""Connection to one store, or to two merged ones: the baseline may be in another store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from stumble.errors import UsageError
from stumble.experiments.noninferiority.arm_evidence import BASELINE_PREFIX
from stumble.store import index
from traces.store.definitions_file import load_definitions
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore

if TYPE_CHECKING:
    import duckdb


@contextmanager
def open_store_pair(
    store: TraceStore, other: Path | None = None
) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open a store, or the store merged with another. Raises UsageError if that is no store."""
    if other is None:
        with store.open_locked() as connection:
            yield connection
        return
    import duckdb

    with duckdb.connect() as connection:
        load_definitions(connection)
        for name, table in _merge_store_tables(store, find_other_store(other)).items():
            connection.register("arriving", table)
            connection.execute(f'DROP VIEW "{name}"')
            connection.execute(f'CREATE TABLE "{name}" AS FROM arriving')
            connection.unregister("arriving")
        yield connection


def find_other_store(path: Path) -> TraceStore:
    """Return the store of a folder, or of its `store.duckdb`. Raises UsageError if it is none."""
    root = path.parent if path.name == "store.duckdb" else path
    if not (root / "index").is_dir() and not (root / "tapes").is_dir():
        raise UsageError(f"{path} is no store: name a .stumble folder, or the store.duckdb in it")
    store = TraceStore(root)
    index.refresh_index(store)
    return store


_RENAMED_COLUMNS = {
    "trajectories": """
        SELECT * REPLACE (
            $begins || trajectory_id AS trajectory_id,
            $begins || coalesce(campaign, '') AS campaign
        )
        FROM trajectories
    """,
    "injections": """
        SELECT * REPLACE (
            $begins || injection_id AS injection_id,
            $begins || trajectory_id AS trajectory_id,
            CASE WHEN repeat_of IS NOT NULL THEN $begins || repeat_of END AS repeat_of
        )
        FROM injections
    """,
    "outcomes": """
        SELECT * REPLACE ($begins || injection_id AS injection_id) FROM outcomes
    """,
}
"""SQL that renames the runs of the other store, as both stores may have the same runs."""

_ANCESTORS_SQL = "SELECT * FROM trajectories WHERE trajectory_id NOT IN (SELECT unnest($known))"
"""Runs of the other store under their own ids: roots of forks are found by these."""


def _merge_store_tables(store: TraceStore, other: TraceStore) -> dict[str, pa.Table]:
    """Return the relations that the view `strikes` reads, with the rows of both stores."""
    tables = {name: schema.empty_table() for name, schema in SCHEMAS.items()}
    with store.open_locked() as connection, other.open_locked() as other_connection:
        for name, renamed in _RENAMED_COLUMNS.items():
            own_table = _fetch_relation_table(connection, f'FROM "{name}"', name)
            parts = [
                own_table,
                _fetch_relation_table(other_connection, renamed, name, begins=BASELINE_PREFIX),
            ]
            if name == "trajectories":
                known_ids = own_table.column("trajectory_id").to_pylist()
                parts.append(
                    _fetch_relation_table(other_connection, _ANCESTORS_SQL, name, known=known_ids)
                )
            tables[name] = pa.concat_tables(parts)
    return tables


def _fetch_relation_table(
    connection: "duckdb.DuckDBPyConnection", sql: str, name: str, **asked: object
) -> pa.Table:
    answer: pa.Table = connection.execute(sql, asked or None).to_arrow_table()
    return answer.cast(SCHEMAS[name])
