"""Rows of the tapes of a store, written in batches; a tape that cannot be read loses no other."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import duckdb
import pyarrow as pa

from stumble.store.judged_rows import Tables, build_tables_by_run
from stumble.store.store_errors import report_write_errors
from stumble.store.tape_files import seal_finished_tape
from traces.store.query_signals import restore_interrupts
from traces.store.trace_store import TraceStore
from traces.tape.reader import Tape, pause_garbage_collection, read_tape

TAPES_PER_BATCH, BATCH_BYTES = 64, 1 << 20
"""Most tapes in memory at once, and bytes of their files after which no other is read."""


def write_tapes(store: TraceStore, paths: Iterable[Path], refused: dict[Path, str]) -> None:
    """Write the rows of these tapes; put those that fail into `refused`, each with the reason."""
    for some in _batch_paths(paths):
        tapes = dict[Path, Tape]()
        for path in some:
            try:
                tapes[path] = _read_store_tape(path)
            except ValueError as error:
                refused[path] = str(error)
        with pause_garbage_collection():
            tables = _build_readable_tables(tapes, store, refused)
        store.write_all(tables)


def _batch_paths(paths: Iterable[Path]) -> Iterator[list[Path]]:
    batch, size = list[Path](), 0
    for path in paths:
        batch.append(path)
        size += path.stat().st_size if path.is_file() else 0
        if len(batch) == TAPES_PER_BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def write_run_rows(store: TraceStore, ids: Iterable[str]) -> None:
    """Write the rows of these runs, whose tapes are complete and in the store."""
    tapes = [read_tape(store.tapes / f"{id}.tape") for id in ids]
    with report_write_errors(store):
        store.write_all(build_tables_by_run(tapes, store))


def write_batch(store: TraceStore, segment: str, tapes: Iterable[Tape]) -> None:
    """Write the rows of ended tapes, with all their twins, as one segment."""
    parts = list(build_tables_by_run(tapes, store).values())
    names = {name for tables in parts for name in tables}
    together = {
        name: pa.concat_tables([tables[name] for tables in parts if name in tables])
        for name in names
    }
    with report_write_errors(store):
        store.write(segment, together)


def _read_store_tape(path: Path) -> Tape:
    """Read a tape of the store, sealed. Raises ValueError if it is none, or has another id."""
    _seal_killed_tape(path)
    tape = read_tape(path)
    if tape.trajectory.id != path.stem:
        raise ValueError(f"{path}: it is the run {tape.trajectory.id}, and must be named so")
    return tape


def _build_readable_tables(
    tapes: Mapping[Path, Tape], store: TraceStore, refused: dict[Path, str]
) -> dict[str, Tables]:
    """Build the tables of these tapes; put tapes that fail into `refused`, without loss of others.

    A tape may contain arbitrary data that no agent sends.
    """
    try:
        with restore_interrupts():
            return build_tables_by_run(tapes.values(), store)
    except (OSError, duckdb.Error):
        raise
    except Exception as error:
        if len(tapes) == 1:
            [path] = tapes
            refused[path] = f"{path}: no rows can be made of it ({type(error).__name__}: {error})"
            return {}
    separate = [
        _build_readable_tables({path: tape}, store, refused) for path, tape in tapes.items()
    ]
    return {id: tables for each in separate for id, tables in each.items()}


def _seal_killed_tape(path: Path) -> None:
    """Seal the tape of a killed run, unless it is a link or has other links."""
    if path.stat().st_nlink == 1 and not path.is_symlink():
        seal_finished_tape(path)
