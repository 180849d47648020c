"""Bring imported runs into a store, each once: new, grown, with more facts, or known already.

A run is the same if its source gave it the same id and its messages are the same. One whose
messages are the beginning of another one's is an older state of it, unless it has an ending of its
own. So any copy, excerpt or other layout of a file adds nothing, and a file that grew replaces what
grew.

Facts of a known run are completed by another file's (a verdict that came later, for example); what
only a file's name tells never replaces a fact.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from traces.importers import ImportedTables, find_format, read_format_tables
from traces.importers.forgotten_runs import ForgottenRuns
from traces.importers.known_runs import (
    KnownRuns,
    count_apart,
    find_known_runs,
    find_last_digests,
    find_other_states,
    list_run_ids,
)
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore
from traces.store.usage_rows import PriceFunction, price_nothing

type Tables = dict[str, pa.Table]
BATCH_FILES = 256
BATCH_BYTES = 24 << 20
"""Most files, and bytes of rows but for one file, that are merged into the index together."""
_COSTS = ("cost_usd", "cost_source")
_REPLACES = ".replace"
"""Marks the kept source of an import that replaced known runs."""


class MergedRuns(Struct, frozen=True, kw_only=True):
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
    store: TraceStore, path: Path, read: ImportedTables | None = None, *, replace: bool = False
) -> MergedRuns:
    """Import a file: write the rows of its runs that are not known, and keep a copy of it.

    `read` are its rows, if they were read already. With `replace` its state of a known run counts,
    whatever is there. Runs that were forgotten are imported again.
    """
    if read is None:
        read = _read_file(path, price_nothing)
    return import_batch_to_store(store, [(path, read)], replace=replace)[0]


def _read_file(path: Path, price: PriceFunction) -> ImportedTables:
    format = find_format(path)
    if format is None:
        raise ValueError(f"{path}: none of the formats known here")
    return read_format_tables(format, path, price)


def import_batch_to_store(
    store: TraceStore,
    files: Sequence[tuple[Path, ImportedTables]],
    *,
    replace: bool = False,
    keeps_forgotten: bool = False,
) -> list[MergedRuns]:
    """Import files in their order, as `import_to_store` does, with one look at what is known.

    Files that have states of the same runs are told apart: the later one sees what the earlier one
    wrote. `keeps_forgotten` leaves out runs that were forgotten.
    """
    merged = list[MergedRuns]()
    with store.import_lock():
        forgotten, left = ForgottenRuns(store.root), list(files)
        if keeps_forgotten:
            left = [(path, _without_forgotten(read, forgotten)) for path, read in left]
        else:
            forgotten.remember([id for _, read in left for id in list_run_ids(read.tables)])
        while left:
            some = left[: count_apart([read for _, read in left])]
            done = _import_apart(store, some, replace=replace, keeps_all=keeps_forgotten)
            merged += done
            left = left[len(done) :]
    return merged


def _import_apart(
    store: TraceStore,
    files: Sequence[tuple[Path, ImportedTables]],
    *,
    replace: bool,
    keeps_all: bool,
) -> list[MergedRuns]:
    """Import files that share no run; ends after the first that changes rows of another file."""
    known = find_known_runs(store, [read for _, read in files])
    done, fresh = list[MergedRuns](), dict[str, Tables]()
    for path, read in files:
        merged = _merge_runs(store, read, known, replace=replace)
        done.append(merged)
        if merged.is_known and not keeps_all:
            continue
        kept = store.keep_import(path, rename=replace)
        if replace:
            (kept.parent / _REPLACES).touch()
        segment = kept.parent.name
        if merged.removed or merged.updated or segment in fresh or segment in known.segments:
            store.write_all(fresh)
            fresh = {}
            _write_merged(store, segment, merged)
            break
        fresh[segment] = merged.tables
    if fresh:
        store.write_all(fresh)
    return done


def restore_imports(store: TraceStore, price: PriceFunction = price_nothing) -> tuple[str, ...]:
    """Write the rows of every kept import that the index lacks; return their segments."""
    present = set(store.segments())
    missing = [each for each in store.imports() if each.parent.name not in present]
    replaced = [(each.parent / _REPLACES).exists() for each in missing]
    for replace, group in groupby(zip(missing, replaced, strict=True), key=lambda each: each[1]):
        for some in batch_imports((path, _read_file(path, price)) for path, _ in group):
            import_batch_to_store(store, some, replace=replace, keeps_forgotten=True)
    return tuple(each.parent.name for each in missing)


def batch_imports(
    files: Iterable[tuple[Path, ImportedTables]],
) -> Iterator[list[tuple[Path, ImportedTables]]]:
    """Yield the files in batches that are bounded in number and in memory."""
    batch, size = list[tuple[Path, ImportedTables]](), 0
    for each in files:
        batch.append(each)
        size += sum(table.nbytes for table in each[1].tables.values())
        if len(batch) >= BATCH_FILES or size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _without_forgotten(read: ImportedTables, forgotten: ForgottenRuns) -> ImportedTables:
    digests = find_last_digests(read.tables)
    keep = [
        id
        for id in list_run_ids(read.tables)
        if not forgotten.has(id, digests.get(id, ""), read.keys.get(id))
    ]
    tables = {name: _select(rows, keep) for name, rows in read.tables.items()}
    return copy.replace(read, tables=tables)


def _merge_runs(
    store: TraceStore, read: ImportedTables, known: KnownRuns, *, replace: bool
) -> MergedRuns:
    ids = list_run_ids(read.tables)
    stored = {id: known.stored[id] for id in ids if id in known.stored}
    if not read.keys:
        fresh = [id for id in ids if id not in stored]
        tables = {name: _select(rows, fresh) for name, rows in read.tables.items()}
        return MergedRuns(new=tuple(fresh), known=tuple(stored), tables=tables)
    older, newer = find_other_states(read, known)
    same = [id for id in ids if id in stored]
    superseded = {each for states in older.values() for each in states if each in read.keys}
    superseded |= set() if replace else newer.keys() - stored.keys()
    fresh = [id for id in ids if id not in stored and id not in superseded]
    own = [id for id in same if id not in read.restored]
    completed = _complete_runs(store, read, own, known, replace=replace)
    changed = [id for id in same if id in completed]
    parts = [{name: _select(rows, fresh) for name, rows in read.tables.items()}]
    parts += [completed[id] for id in changed]
    removed = [each for id in fresh for each in older.get(id, ()) if each not in read.keys]
    if replace:
        removed += [newer[id] for id in fresh if id in newer]
    written = {*fresh, *changed}
    return MergedRuns(
        new=tuple(id for id in fresh if id not in older),
        grown=tuple(id for id in fresh if id in older),
        updated=tuple(changed),
        known=tuple(id for id in ids if id not in written),
        removed=tuple(removed),
        tables=_concat(parts),
    )


def _complete_runs(
    store: TraceStore,
    read: ImportedTables,
    ids: list[str],
    known: KnownRuns,
    *,
    replace: bool,
) -> dict[str, Tables]:
    """Return the rows of the known runs of which the file knows more, by id."""
    told = {str(row["trajectory_id"]): row for row in read.tables["trajectories"].to_pylist()}
    counted = _count_usage(read.tables)
    segments: dict[str, Tables] = {}
    completed: dict[str, Tables] = {}
    for id in ids:
        row = _complete_facts(known.stored[id], told[id], read.hints, replace=replace)
        is_richer = counted.get(id, 0) > known.usage.get(id, 0)
        if row == known.stored[id] and not is_richer:
            continue
        if is_richer or replace:
            tables = {name: _select(rows, [id]) for name, rows in read.tables.items()}
        else:
            place = store.find_segments([id])[id]
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
    if not replace and stored["cost_source"] == "reported" != told["cost_source"]:
        told = {name: value for name, value in told.items() if name not in _COSTS}
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
    present = set(list_run_ids(tables)) & set(ids)
    digests: dict[str, list[str]] = {id: [] for id in present}
    columns = (
        tables["messages"].select(["trajectory_id", "digest"]) if "messages" in tables else None
    )
    for row in columns.to_pylist() if columns is not None else ():
        if row["trajectory_id"] in digests:
            digests[row["trajectory_id"]].append(row["digest"])
    return digests
