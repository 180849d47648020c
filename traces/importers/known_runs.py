"""What a store knows of the runs in some files, read with one connection for all of them."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from msgspec import Struct

from traces.importers import ImportedTables
from traces.importers.shared.conversation import make_run_id
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore

_STORED = "SELECT * FROM trajectories WHERE trajectory_id IN (FROM unnest($ids))"
_OLDER = """SELECT trajectory_id FROM trajectories
    WHERE ended IS NULL AND trajectory_id IN (FROM unnest($ids))"""
_NEWER = """SELECT m.digest, o.trajectory_id, max_by(o.digest, o.position)
    FROM messages AS m JOIN messages AS o USING (trajectory_id)
    WHERE m.digest IN (FROM unnest($digests)) GROUP BY ALL"""
_USAGE = """SELECT trajectory_id, count(*) FROM usage
    WHERE trajectory_id IN (FROM unnest($ids)) GROUP BY ALL"""


class KnownRuns(Struct, frozen=True, kw_only=True):
    """The rows of the index that concern some runs."""

    stored: Mapping[str, dict[str, object]]
    """Rows of `trajectories`, by id."""
    older: frozenset[str]
    """Stored ids without an ending, of those that earlier states of the runs would have."""
    newer: Mapping[str, Sequence[tuple[str, str]]]
    """Stored runs with a message of this digest: their ids and last digests."""
    usage: Mapping[str, int]
    """Number of rows of `usage`, by id."""
    segments: frozenset[str]
    """All segments of the index."""


def list_run_ids(tables: Mapping[str, pa.Table]) -> list[str]:
    """Return the ids of the runs in some rows."""
    ids: list[str] = tables["trajectories"]["trajectory_id"].to_pylist()
    return ids


def find_last_digests(tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """Return the digest of each run's last message, which is that of the whole run."""
    if "messages" not in tables:
        return {}
    columns = tables["messages"].select(["trajectory_id", "digest"]).to_pydict()
    return dict(zip(columns["trajectory_id"], columns["digest"], strict=True))


def find_earlier_ids(read: ImportedTables) -> dict[str, str]:
    """Return the ids that earlier states of the runs would have, with the id of each run."""
    if not read.keys:
        return {}
    columns = read.tables["messages"].select(["trajectory_id", "digest"]).to_pydict()
    last = find_last_digests(read.tables)
    return {
        make_run_id(id.rpartition("-")[0], read.keys[id], digest): id
        for id, digest in zip(columns["trajectory_id"], columns["digest"], strict=True)
        if digest != last[id]
    }


def count_apart(reads: Sequence[ImportedTables]) -> int:
    """Return how many of the first files share no run, nor states of one; at least one."""
    seen = set[str]()
    for number, read in enumerate(reads):
        own = {*list_run_ids(read.tables), *find_earlier_ids(read)}
        if number and own & seen:
            return number
        seen |= own
    return len(reads)


def find_known_runs(store: TraceStore, reads: Sequence[ImportedTables]) -> KnownRuns:
    """Read what the index has of the runs in these files."""
    ids = [id for read in reads for id in list_run_ids(read.tables)]
    keyed = [read for read in reads if read.keys]
    earlier = [id for read in keyed for id in find_earlier_ids(read)]
    digests = [each for read in keyed for each in find_last_digests(read.tables).values()]
    names = SCHEMAS["trajectories"].names
    segments = frozenset(store.segments())
    with store.open_locked() as connection:
        rows: pa.Table = connection.sql(_STORED, params={"ids": ids}).to_arrow_table()
        older = connection.execute(_OLDER, {"ids": earlier}).fetchall() if earlier else []
        later = connection.execute(_NEWER, {"digests": digests}).fetchall() if digests else []
        usage = dict(connection.execute(_USAGE, {"ids": ids}).fetchall())
    newer: dict[str, list[tuple[str, str]]] = {}
    for digest, id, end in later:
        newer.setdefault(digest, []).append((id, end))
    return KnownRuns(
        stored={str(row["trajectory_id"]): row for row in rows.select(names).to_pylist()},
        older=frozenset(id for (id,) in older),
        newer=newer,
        usage=usage,
        segments=segments,
    )


def find_other_states(
    read: ImportedTables, known: KnownRuns
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the older states of these runs, and the stored newer state of each, by id."""
    columns = read.tables["trajectories"].select(["trajectory_id", "ended"]).to_pydict()
    ended = dict(zip(columns["trajectory_id"], columns["ended"], strict=True))
    earlier = find_earlier_ids(read)
    own = {id for id in earlier.keys() & ended.keys() if ended[id] is None}
    older: dict[str, list[str]] = {}
    for id in {*own, *(known.older & earlier.keys())}:
        older.setdefault(earlier[id], []).append(id)
    newer = {
        id: other
        for id, digest in find_last_digests(read.tables).items()
        if ended.get(id) is None
        for other, end in known.newer.get(digest, ())
        if other != id and make_run_id(id.rpartition("-")[0], read.keys[id], end) == other
    }
    return older, newer
