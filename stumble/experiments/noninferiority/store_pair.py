"""Connection to one store, or to two merged ones: the baseline may be in another store."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from stumble.errors import UsageError
from stumble.experiments.noninferiority.arm_evidence import BASELINE_PREFIX
from stumble.experiments.seals.kept_verdicts import replace_verdicts
from stumble.store import index
from traces.store.definitions_file import load_definitions
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore

if TYPE_CHECKING:
    import duckdb


@contextmanager
def open_store_pair(
    store: TraceStore, other: Path | None = None, kept: Collection[str] = ()
) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Open a store, or the store merged with another, or with the kept verdicts of campaigns.

    Raises UsageError if the other is no store.
    """
    if other is None and not kept:
        with store.open_locked() as connection:
            yield connection
        return
    import duckdb

    with duckdb.connect() as connection:
        load_definitions(connection)
        tables = _merge_store_tables(store, find_other_store(other) if other else None)
        for name, table in tables.items():
            connection.register("arriving", table)
            connection.execute(f'DROP VIEW "{name}"')
            connection.execute(f'CREATE TABLE "{name}" AS FROM arriving')
            connection.unregister("arriving")
        if kept:
            replace_verdicts(connection, kept, store)
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


def _merge_store_tables(store: TraceStore, other: TraceStore | None) -> dict[str, pa.Table]:
    """Return the relations of injections, with the rows of both stores."""
    tables = {name: schema.empty_table() for name, schema in SCHEMAS.items()}
    with store.open_locked() as connection:
        for name in _RENAMED_COLUMNS:
            tables[name] = _fetch_relation_table(connection, f'FROM "{name}"', name)
    if other is None:
        return tables
    known_ids = tables["trajectories"].column("trajectory_id").to_pylist()
    with other.open_locked() as connection:
        for name, renamed in _RENAMED_COLUMNS.items():
            parts = [_fetch_relation_table(connection, renamed, name, begins=BASELINE_PREFIX)]
            if name == "trajectories":
                parts.append(
                    _fetch_relation_table(connection, _ANCESTORS_SQL, name, known=known_ids)
                )
            tables[name] = pa.concat_tables([tables[name], *parts])
    return tables


def _fetch_relation_table(
    connection: "duckdb.DuckDBPyConnection", sql: str, name: str, **asked: object
) -> pa.Table:
    answer: pa.Table = connection.sql(sql, params=asked or None).to_arrow_table()
    return answer.cast(SCHEMAS[name])
