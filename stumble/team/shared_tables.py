"""The relations of a team's runs as Parquet in a bucket, and a store of a copy of them.

    RELATION/run_day=2026-11-24/run_source=fork/part.parquet

A day is that of a run's recording in UTC. A part has the rows of all who exported runs of that day:
an export replaces the rows of its own runs in it. It writes the part only if that changes it, and
only over the part that it has read. So an export that was cut off goes on, and of two at once the
second reads again what the first has written. The part of `trajectories` comes last: a run that is
listed there is complete.
"""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from scenarios.workspace.blobs import write_atomic_file
from stumble.errors import HarnessError, UsageError
from stumble.packs.pack_cache import packs_folder
from stumble.team.object_store import ObjectStore
from stumble.team.sync_store import find_push_refusal
from traces.exporters.parquet import PARTITION
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore

DAY = "run_day"
UNKNOWN = "__HIVE_DEFAULT_PARTITION__"
MAX_TRIES = 20
"""How often a part is read again, as somebody else has written it meanwhile."""
_ORDER = (*(name for name in SCHEMAS if name != "trajectories"), "trajectories")
_PARTITIONS_SQL = f"""
    SELECT
        coalesce(strftime(timezone('UTC', recorded_at), '%Y-%m-%d'), '{UNKNOWN}') AS run_day,
        coalesce(source, '{UNKNOWN}') AS run_source,
        list(trajectory_id ORDER BY trajectory_id) AS runs
    FROM trajectories
    WHERE $runs IS NULL OR trajectory_id IN (SELECT unnest($runs::VARCHAR[]))
    GROUP BY ALL
    ORDER BY ALL
"""
_OWN_SQL = "SELECT * FROM {relation} WHERE trajectory_id IN (SELECT unnest($runs))"
_OWN_OUTCOMES_SQL = """
    SELECT outcomes.* FROM outcomes JOIN injections USING (injection_id)
    WHERE injections.trajectory_id IN (SELECT unnest($runs))
"""
_MERGED_SQL = """
    FROM own
    UNION ALL BY NAME
    FROM there WHERE {key} IS NULL OR {key} NOT IN (SELECT unnest($taken))
    ORDER BY ALL
"""

type ProgressCallback = Callable[[int, int], object]


@dataclass(kw_only=True)
class SharedExport:
    """What was written."""

    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SCHEMAS, 0))
    """Rows of this store in the bucket, by relation."""
    written: int = 0
    unchanged: int = 0
    """Parts that had all of it."""
    refused: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "rows": self.rows,
            "parts_written": self.written,
            "parts_unchanged": self.unchanged,
            "refused": self.refused,
        }


class _Partition(Struct, frozen=True, kw_only=True):
    day: str
    source: str
    runs: list[str]

    def name_part(self, relation: str) -> str:
        return f"{relation}/{DAY}={self.day}/{PARTITION}={self.source}/part.parquet"


def export_tables(
    store: TraceStore,
    remote: ObjectStore,
    known: Sequence[str],
    tell: ProgressCallback,
    runs: Sequence[str] | None = None,
) -> SharedExport:
    """Merge the rows of all runs, or of these, into the parts of a bucket.

    Runs with a tape in which a secret is found are refused.
    """
    result = SharedExport()
    with store.connect() as connection:
        given = {"runs": None if runs is None else list(runs)}
        found = connection.execute(_PARTITIONS_SQL, given).fetchall()
        partitions = [_Partition(day=day, source=source, runs=ids) for day, source, ids in found]
        for number, partition in enumerate(partitions):
            tell(number, len(partitions))
            _export_partition(connection, partition, store, remote, known, result)
    return result


def _export_partition(
    connection: duckdb.DuckDBPyConnection,
    partition: _Partition,
    store: TraceStore,
    remote: ObjectStore,
    known: Sequence[str],
    result: SharedExport,
) -> None:
    listed = remote.read_tagged(partition.name_part("trajectories"))
    there = set(_read_part(listed[0], partition, "trajectories")["trajectory_id"].to_pylist()) \
        if listed else set()  # fmt: skip
    runs = []
    for id in partition.runs:
        tape = store.tapes / f"{id}.tape"
        why = find_push_refusal(tape, known) if id not in there and tape.is_file() else None
        if why is None:
            runs.append(id)
        else:
            result.refused.append(f"{id}: {why}")
    for relation in _ORDER if runs else ():
        query = _OWN_OUTCOMES_SQL if relation == "outcomes" else _OWN_SQL.format(relation=relation)
        own = connection.sql(query, params={"runs": runs}).to_arrow_table().cast(SCHEMAS[relation])
        taken = runs
        if relation == "outcomes":
            taken = own["injection_id"].to_pylist()
        result.rows[relation] += own.num_rows
        changed = _merge_part(remote, partition, relation, own, taken)
        result.written += changed
        result.unchanged += not changed


def _merge_part(
    remote: ObjectStore, partition: _Partition, relation: str, own: pa.Table, taken: list[str]
) -> bool:
    """Replace the rows of these runs (outcomes: injections) in a part; False if it has them."""
    name = partition.name_part(relation)
    key = "injection_id" if relation == "outcomes" else "trajectory_id"
    for _ in range(MAX_TRIES):
        found = remote.read_tagged(name)
        there = _read_part(found[0], partition, relation) if found else own.slice(0, 0)
        with duckdb.connect() as merger:
            merger.register("own", own)
            merger.register("there", there)
            query = _MERGED_SQL.format(key=key)
            merged = merger.sql(query, params={"taken": taken}).to_arrow_table()
        merged = merged.cast(SCHEMAS[relation])
        if merged.equals(there) or not merged.num_rows:
            return False
        data = io.BytesIO()
        pq.write_table(merged, data, compression="zstd")
        if remote.put_over(name, data.getvalue(), found[1] if found else None):
            return True
    raise HarnessError(f"{remote.address}/{name}: others wrote it {MAX_TRIES} times meanwhile")


def _read_part(data: bytes, partition: _Partition, relation: str) -> pa.Table:
    try:
        return _read_relation(data, relation)
    except ValueError as error:
        name = partition.name_part(relation)
        raise UsageError(f"{name} cannot be added to: {error}; export to a new prefix") from None


def _read_relation(data: bytes, relation: str) -> pa.Table:
    """Read a part as a table of its relation; columns that it lacks are NULL.

    Raises ValueError if it is damaged, or of a version with more columns or other types.
    """
    try:
        table = pq.ParquetFile(io.BytesIO(data)).read()
        schema = SCHEMAS[relation]
        if newer := set(table.column_names) - set(schema.names):
            raise ValueError(f"it has {', '.join(sorted(newer))}, which this version does not know")
        for column in schema:
            if column.name not in table.column_names:
                nulls = pa.nulls(table.num_rows, column.type)
                table = table.append_column(column, nulls)
        return table.select(schema.names).cast(schema)
    except pa.ArrowException as error:
        raise ValueError(f"it is damaged, or of another version: {error}") from None


def open_shared_store(remote: ObjectStore, warn: Callable[[str], object]) -> TraceStore:
    """Return a store of a copy of the bucket's parts, in the user's cache.

    Only parts that have changed are fetched. A part that cannot be used is named, with its
    partition left out. Raises UsageError if there is none.
    """
    name = blake2b(remote.address.encode(), digest_size=16).hexdigest()
    store = TraceStore(packs_folder().parent / "shared" / name)
    state = store.root / "parts.json"
    with store.import_lock():
        seen: dict[str, dict[str, str]] = json.loads(state.read_text()) if state.exists() else {}
        there = _list_partitions(remote)
        if not there:
            raise UsageError(
                f"{remote.address} has no runs: stumble export --to parquet -o {remote.address}"
            )
        store.drop(*(segment for segment in seen if segment not in there))
        seen = {segment: tags for segment, tags in seen.items() if segment in there}
        for segment, tags in there.items():
            if seen.get(segment) == tags:
                continue
            try:
                store.write(segment, _fetch_partition(remote, tags))
            except ValueError as error:
                warn(f"{error}; its runs are left out")
                store.drop(segment)
                seen.pop(segment, None)
            else:
                seen[segment] = tags
            write_atomic_file(state, json.dumps(seen).encode())
    return store


def _list_partitions(remote: ObjectStore) -> dict[str, dict[str, str]]:
    """Return the objects, with their tags, of each partition that has trajectories."""
    found = dict[str, dict[str, str]]()
    for relation in SCHEMAS:
        for name, tag in remote.list_tags(f"{relation}/").items():
            if name.endswith("/part.parquet"):
                digest = blake2b(str(Path(name).parent.relative_to(relation)).encode())
                found.setdefault(f"shared-{digest.hexdigest()[:24]}", {})[name] = tag
    return {
        segment: names
        for segment, names in found.items()
        if any(name.startswith("trajectories/") for name in names)
    }


def _fetch_partition(remote: ObjectStore, names: dict[str, str]) -> dict[str, pa.Table]:
    """Return all relations of a partition, rows of its listed runs alone. Raises ValueError."""
    tables = {relation: schema.empty_table() for relation, schema in SCHEMAS.items()}
    for name in names:
        relation = name.partition("/")[0]
        found = remote.read_tagged(name)
        if found is not None:
            try:
                tables[relation] = _read_relation(found[0], relation)
            except ValueError as error:
                raise ValueError(f"{remote.address}/{name}: {error}") from None
    listed = {"trajectory_id": tables["trajectories"]["trajectory_id"]}
    for relation in sorted(SCHEMAS, key="outcomes".__eq__):  # outcomes last: they name injections
        key = "injection_id" if relation == "outcomes" else "trajectory_id"
        tables[relation] = tables[relation].filter(pc.is_in(tables[relation][key], listed[key]))
        if relation == "injections":
            listed["injection_id"] = tables[relation]["injection_id"]
    return tables
