"""Export the store as a Hive-partitioned folder: RELATION/run_source=SOURCE/part.parquet.

DuckDB, Spark, Trino, pandas and Polars read it directly; `run_source` is a column of every relation
there. No relation has a column of that name, so every column stays as it is.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from traces.store.schema import SCHEMAS

PARTITION = "run_source"
_OF_RUNS = """
    select {relation}.* from {relation}
    join trajectories using (trajectory_id)
    where {chosen}
"""
_OF_INJECTIONS = """
    select outcomes.* from outcomes
    join injections using (injection_id)
    join trajectories using (trajectory_id)
    where {chosen}
"""
_ANY_SOURCE = object()


def select_rows(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    runs: Sequence[str] | None = None,
    source: object = _ANY_SOURCE,
) -> pa.Table:
    """Return the rows of a relation, or those of these runs, or of the runs of a source."""
    query = _OF_INJECTIONS if relation == "outcomes" else _OF_RUNS
    if relation == "trajectories":
        query = "select * from trajectories where {chosen}"
    conditions = {
        "trajectories.source is not distinct from ?": None if source is _ANY_SOURCE else [source],
        "trajectory_id in (select unnest(?))": None if runs is None else [list(runs)],
    }
    given = {condition: values for condition, values in conditions.items() if values is not None}
    sql = query.format(relation=relation, chosen=" and ".join(given) or "true")
    parameters = [value for values in given.values() for value in values]
    return connection.sql(sql, params=parameters).to_arrow_table()


def write_relations(
    connection: duckdb.DuckDBPyConnection, folder: Path, runs: Sequence[str] | None = None
) -> dict[str, int]:
    """Write all rows, or those of these runs; return the number of rows per relation."""
    counts = dict.fromkeys(SCHEMAS, 0)
    sources = connection.execute("select distinct source from trajectories").fetchall()
    for (source,) in sources:
        for relation, schema in SCHEMAS.items():
            rows = select_rows(connection, relation, runs, source)
            if rows.num_rows:
                name = f"{PARTITION}={source or '__HIVE_DEFAULT_PARTITION__'}"
                part = folder / relation / name
                part.mkdir(parents=True)
                pq.write_table(rows.cast(schema), part / "part.parquet", compression="zstd")
                counts[relation] += rows.num_rows
    return counts
