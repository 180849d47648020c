"""Bring imported runs into a store, each once: new, grown, with more facts, or known already.

A run is the same if its source gave it the same id and its messages are the same. One whose
messages are the beginning of another one's is an older state of it, unless it has an ending of its
own. So any copy, excerpt or other layout of a file adds nothing, and a file that grew replaces what
grew.

Facts of a known run are completed by another file's (a verdict that came later, for example); what
only a file's name tells never replaces a fact.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from traces.importers import ImportedTables, find_format, read_format_tables
from traces.importers.forgotten_runs import ForgottenRuns
from traces.importers.shared.conversation import make_run_id
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore

type Tables = dict[str, pa.Table]
_REPLACES = ".replace"
"""Marks the kept source of an import that replaced known runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRuns:
    """What became of the runs of a file, by id."""

    new: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()
    """Runs that replaced an older state of theirs."""
    updated: tuple[str, ...] = ()
    """Known runs that got more facts, or were replaced."""
    known: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """The older states."""
    tables: Tables = field(default_factory=dict)
    """The rows to write: of all but the known ones."""

    @property
    def is_known(self) -> bool:
        """Whether the file added nothing."""
        return not (self.new or self.grown or self.updated)


def import_to_store(
    store: TraceStore,
    path: Path,
    read: ImportedTables | None = None,
    *,
    replace: bool = False,
    keeps_forgotten: bool = False,
) -> MergedRuns:
    """Import a file: write the rows of its runs that are not known, and keep a copy of it.

    `read` are its rows, if they were read already. With `replace` its state of a known run counts,
    whatever is there. Runs that were forgotten are imported again unless `keeps_forgotten`.
    """
    if read is None:
        format = find_format(path)
        if format is None:
            raise ValueError(f"{path}: none of the formats known here")
        read = read_format_tables(format, path)
    with store.import_lock():
        forgotten = ForgottenRuns(store.root)
        if keeps_forgotten:
            read = _without_forgotten(read, forgotten)
        else:
            forgotten.remember(_list_ids(read.tables))
        merged = _merge_runs(store, read, replace=replace)
        if merged.is_known and not keeps_forgotten:
            return merged
        kept = store.keep_import(path, rename=replace)
        if replace:
            (kept.parent / _REPLACES).touch()
        _write_merged(store, kept.parent.name, merged)
    return merged


def restore_imports(store: TraceStore) -> tuple[str, ...]:
    """Write the rows of every kept import that the index lacks; return their segments."""
    present = set(store.segments())
    missing = [each for each in store.imports() if each.parent.name not in present]
    for each in missing:
        replace = (each.parent / _REPLACES).exists()
        import_to_store(store, each, replace=replace, keeps_forgotten=True)
    return tuple(each.parent.name for each in missing)


def _list_ids(tables: Mapping[str, pa.Table]) -> list[str]:
    ids: list[str] = tables["trajectories"]["trajectory_id"].to_pylist()
    return ids


def _without_forgotten(read: ImportedTables, forgotten: ForgottenRuns) -> ImportedTables:
    digests = _last_digests(read.tables)
    keep = [
        id
        for id in _list_ids(read.tables)
        if not forgotten.has(id, digests.get(id, ""), read.keys.get(id))
    ]
    tables = {name: _select(rows, keep) for name, rows in read.tables.items()}
    return dataclasses.replace(read, tables=tables)


def _merge_runs(store: TraceStore, read: ImportedTables, *, replace: bool) -> MergedRuns:
    ids = _list_ids(read.tables)
    if not read.keys:
        return _merge_tables(store, read, ids)
    stored = _read_stored_runs(store, ids)
    older, newer = _find_other_states(store, read)
    same = [id for id in ids if id in stored]
    superseded = {each for states in older.values() for each in states if each in read.keys}
    superseded |= set() if replace else newer.keys() - stored.keys()
    fresh = [id for id in ids if id not in stored and id not in superseded]
    own = [id for id in same if id not in read.restored]
    completed = _complete_runs(store, read, own, stored, replace=replace)
    changed = [id for id in same if id in completed]
    parts = [{name: _select(rows, fresh) for name, rows in read.tables.items()}]
    parts += [completed[id] for id in changed]
    removed = [each for id in fresh for each in older.get(id, ()) if each not in read.keys]
    if replace:
        removed += [newer[id] for id in fresh if id in newer]
    return MergedRuns(
        new=tuple(id for id in fresh if id not in older),
        grown=tuple(id for id in fresh if id in older),
        updated=tuple(changed),
        known=tuple(id for id in ids if id not in {*fresh, *changed}),
        removed=tuple(removed),
        tables=_concat(parts),
    )


def _merge_tables(store: TraceStore, read: ImportedTables, ids: list[str]) -> MergedRuns:
    """Merge rows of results, which have no messages: a known run is known by its id alone."""
    stored = store.find_segments(ids)
    fresh = [id for id in ids if id not in stored]
    tables = {name: _select(rows, fresh) for name, rows in read.tables.items()}
    known = tuple(id for id in ids if id in stored)
    return MergedRuns(new=tuple(fresh), known=known, tables=tables)


def _read_stored_runs(store: TraceStore, ids: list[str]) -> dict[str, dict[str, object]]:
    with store.open_locked() as connection:
        query = "SELECT * FROM trajectories WHERE trajectory_id IN $ids"
        rows: pa.Table = connection.sql(query, params={"ids": ids}).to_arrow_table()
    rows = rows.select(SCHEMAS["trajectories"].names)
    return {str(row["trajectory_id"]): row for row in rows.to_pylist()}


def _last_digests(tables: Mapping[str, pa.Table]) -> dict[str, str]:
    if "messages" not in tables:
        return {}
    columns = tables["messages"].select(["trajectory_id", "digest"]).to_pydict()
    return dict(zip(columns["trajectory_id"], columns["digest"], strict=True))


def _find_other_states(
    store: TraceStore, read: ImportedTables
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the stored older states of these runs, and the stored newer state of each, by id."""
    columns = read.tables["messages"].select(["trajectory_id", "digest"]).to_pydict()
    last = _last_digests(read.tables)
    sources = {id: id.rpartition("-")[0] for id in read.keys}
    earlier = {
        make_run_id(sources[id], read.keys[id], digest): id
        for id, digest in zip(columns["trajectory_id"], columns["digest"], strict=True)
        if digest != last[id]
    }
    ended = dict(
        zip(
            read.tables["trajectories"]["trajectory_id"].to_pylist(),
            read.tables["trajectories"]["ended"].to_pylist(),
            strict=True,
        )
    )
    older_query = """SELECT trajectory_id FROM trajectories
        WHERE trajectory_id IN $ids AND ended IS NULL"""
    newer_query = """SELECT m.digest, o.trajectory_id, max_by(o.digest, o.position)
        FROM messages AS m JOIN messages AS o USING (trajectory_id)
        WHERE m.digest IN $digests GROUP BY ALL"""
    with store.open_locked() as connection:
        rows = connection.execute(older_query, {"ids": list(earlier)}).fetchall()
        later = connection.execute(newer_query, {"digests": list(last.values())}).fetchall()
    own = {id for id in earlier.keys() & ended.keys() if ended[id] is None}
    older: dict[str, list[str]] = {}
    for id in {*own, *(id for (id,) in rows)}:
        older.setdefault(earlier[id], []).append(id)
    by_digest: dict[str, list[tuple[str, str]]] = {}
    for digest, id, end in later:
        by_digest.setdefault(digest, []).append((id, end))
    newer = {
        id: other
        for id, digest in last.items()
        if ended.get(id) is None
        for other, end in by_digest.get(digest, ())
        if other != id and make_run_id(sources[id], read.keys[id], end) == other
    }
    return older, newer


def _complete_runs(
    store: TraceStore,
    read: ImportedTables,
    ids: list[str],
    stored: Mapping[str, Mapping[str, object]],
    *,
    replace: bool,
) -> dict[str, Tables]:
    """Return the rows of the known runs of which the file knows more, by id."""
    told = {str(row["trajectory_id"]): row for row in read.tables["trajectories"].to_pylist()}
    counted = _count_usage(read.tables)
    known_usage = _count_stored_usage(store, ids)
    segments: dict[str, Tables] = {}
    places = store.find_segments(ids)
    completed: dict[str, Tables] = {}
    for id in ids:
        row = _complete_facts(stored[id], told[id], read.hints, replace=replace)
        is_richer = counted.get(id, 0) > known_usage.get(id, 0)
        if row == stored[id] and not is_richer:
            continue
        if is_richer or replace:
            tables = {name: _select(rows, [id]) for name, rows in read.tables.items()}
        else:
            place = places[id]
            segments[place] = segments.get(place) or store.read_segment(place)
            tables = {name: _select(rows, [id]) for name, rows in segments[place].items()}
        schema = SCHEMAS["trajectories"]
        tables["trajectories"] = pa.Table.from_pylist([dict(row)], schema=schema)
        completed[id] = tables
    return completed


def _complete_facts(
    stored: Mapping[str, object],
    told: Mapping[str, object],
    hints: frozenset[str],
    *,
    replace: bool,
) -> Mapping[str, object]:
    """Return the facts of a known run, completed by what a file says of it."""
    completed = dict(stored)
    for name, value in told.items():
        is_hint = name in hints and stored[name] is not None
        if value is not None and (replace or not is_hint):
            completed[name] = value
    return completed


def _count_usage(tables: Mapping[str, pa.Table]) -> dict[str, int]:
    if "usage" not in tables:
        return {}
    counts = pc.value_counts(tables["usage"]["trajectory_id"].combine_chunks())
    return {each["values"]: each["counts"] for each in counts.to_pylist()}


def _count_stored_usage(store: TraceStore, ids: list[str]) -> dict[str, int]:
    query = "SELECT trajectory_id, count(*) FROM usage WHERE trajectory_id IN $ids GROUP BY ALL"
    with store.open_locked() as connection:
        return dict(connection.execute(query, {"ids": ids}).fetchall())


def _write_merged(store: TraceStore, segment: str, merged: MergedRuns) -> None:
    """Write the rows of a file beside what its segment has, and remove what they replace."""
    replaced = [*merged.removed, *merged.updated]
    places = store.find_segments(replaced)
    segments = {place: store.read_segment(place) for place in set(places.values())}
    segments.setdefault(segment, store.read_segment(segment))
    writes = {place: _drop_runs(rows, replaced) for place, rows in segments.items()}
    writes[segment] = _concat([writes[segment], merged.tables])
    store.write_all(writes)


def _select(rows: pa.Table, ids: Iterable[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows["trajectory_id"], pa.array(list(ids), pa.string())))


def _drop_runs(tables: Mapping[str, pa.Table], ids: list[str]) -> Tables:
    dropped = pa.array(ids, pa.string())
    return {
        name: rows.filter(pc.invert(pc.is_in(rows["trajectory_id"], dropped)))
        for name, rows in tables.items()
    }


def _concat(parts: Iterable[Mapping[str, pa.Table]]) -> Tables:
    parts = list(parts)
    names = dict.fromkeys(name for each in parts for name in each)
    return {
        name: pa.concat_tables([each[name] for each in parts if name in each]) for name in names
    }


def forget_runs(store: TraceStore, ids: Iterable[str]) -> dict[str, int]:
    """Remove imported runs from the index, and kept sources that have no other run.

    Returns the kept sources that still hold a removed run beside others, with the number of those.
    """
    with store.import_lock():
        kept = {each.parent.name for each in store.imports()}
        places = {id: place for id, place in store.find_segments(ids).items() if place in kept}
        segments = {place: store.read_segment(place) for place in set(places.values())}
        forgotten, remaining = ForgottenRuns(store.root), dict[str, int]()
        for tables in segments.values():
            forgotten.add(_list_digests(tables, places))
        for place, tables in segments.items():
            rest = _drop_runs(tables, list(places))
            store.write(place, rest)
            if not rest["trajectories"].num_rows:
                store.drop_import(place)
            else:
                remaining[place] = rest["trajectories"].num_rows
    return remaining


def _list_digests(tables: Mapping[str, pa.Table], ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the digests of the messages of each of these runs that the tables have."""
    present = set(_list_ids(tables)) & set(ids)
    digests: dict[str, list[str]] = {id: [] for id in present}
    columns = (
        tables["messages"].select(["trajectory_id", "digest"]) if "messages" in tables else None
    )
    for row in columns.to_pylist() if columns is not None else ():
        if row["trajectory_id"] in digests:
            digests[row["trajectory_id"]].append(row["digest"])
    return digests
