"""Index of a store: rows of tapes from `traces`, with verdicts from `faults`.

The index can always be rebuilt from `.stumble/tapes/` (files, or links to tapes recorded elsewhere)
and `.stumble/imports/`; it contains no other information.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import batched
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from stumble.store.tape_files import seal_finished_tape, unwritable_store
from traces.model import ENDINGS_UNKNOWN, IMPORT_SOURCES, JUDGE_VERSION
from traces.store.query_signals import restore_interrupts
from traces.store.schema import SCHEMAS
from traces.store.trace_store import TraceStore
from traces.tape import Tape, read_tape

if TYPE_CHECKING:
    from stumble.store.judged_rows import Tables

TAPES_PER_BATCH = 64
"""Most tapes in memory at once."""


@contextmanager
def _report_write_errors(store: TraceStore) -> Iterator[None]:
    """Raise HarnessError, with a remedy, if the store cannot be written."""
    try:
        yield
    except (OSError, duckdb.Error) as error:
        raise unwritable_store(store, error) from error


def find_unindexed_tapes(store: TraceStore) -> tuple[Path, ...]:
    """Return the tapes without rows, or with stale rows, or without an end reason.

    Imports never have an end reason.
    """
    with store.open_locked() as connection:
        ended = (
            "select trajectory_id from trajectories where ended is not null or source in $imports"
        )
        done = {
            id for (id,) in connection.execute(ended, {"imports": list(IMPORT_SOURCES)}).fetchall()
        }
        stale = {
            id
            for (id,) in connection.execute(_STALE_RUNS_SQL, _build_stale_parameters()).fetchall()
        }
    done -= stale & set(store.segments())  # rows of a batch cannot be replaced one by one
    paths = sorted(store.tapes.glob("*.tape"))
    return tuple(path for path in paths if path.exists() and path.stem not in done)


_STALE_RUNS_SQL = """
    with judged as (
        select trajectory_id, max(judge_version) as judge, max_by(twins, judge_version) as twins
        from outcomes join injections using (injection_id)
        group by trajectory_id
    ),
    later as (
        select t.trajectory_id
        from judged
        join trajectories as t using (trajectory_id)
        join trajectories as c
            on c.control_group = t.control_group and c.condition = 'clean'
            and (coalesce(len(t.controls), 0) = 0 or list_contains(t.controls, c.cell))
        where c.ended not in $unknown and not list_contains(judged.twins, c.trajectory_id)
    )
    select trajectory_id from judged where judge < $version
    union
    select trajectory_id from later
    union
    select trajectory_id from trajectories where forked_at is not null and control_group is null
    union
    select trajectory_id
    from trajectories
    where condition = 'clean' and passed_reason like '% clean twins have an end state'
        and control_group in (
            select control_group from trajectories
            where condition = 'clean' and state is not null and ended = 'final'
            group by control_group having count(*) >= 3
        )
"""
"""Runs with a verdict by an older judge, or from before all their clean twins had ended; and forks
with rows by an older version."""


def _build_stale_parameters() -> dict[str, object]:
    return {"version": JUDGE_VERSION, "unknown": list(ENDINGS_UNKNOWN)}


def refresh_index(store: TraceStore) -> list[str]:
    """Write the missing rows; return a line for each tape that could not be read.

    Raises KeyboardInterrupt after a signal; what is missing is written by the next call.
    """
    with _report_write_errors(store), restore_interrupts():
        refused: dict[Path, str] = {}
        # A second pass, as a twin may have ended after a run whose control it is.
        for _ in range(2):
            if not (unindexed := find_unindexed_tapes(store)):
                break
            for paths in batched(unindexed, TAPES_PER_BATCH, strict=False):
                tapes = dict[Path, Tape]()
                for path in paths:
                    try:
                        tapes[path] = _read_store_tape(path)
                    except ValueError as error:
                        refused[path] = str(error)
                store.write_all(_build_readable_tables(tapes, store, refused))
        # After the tapes: an export of one of them that was imported is known by its run.
        _restore_imports(store)
        store.compact()
    return [*_describe_lost_tapes(store), *refused.values()]


def _read_store_tape(path: Path) -> Tape:
    """Read a tape of the store, sealed. Raises ValueError if it is none, or has another id."""
    _seal_killed_tape(path)
    tape = read_tape(path)
    if tape.trajectory.id != path.stem:
        raise ValueError(f"{path}: it is the run {tape.trajectory.id}, and must be named so")
    return tape


def _build_readable_tables(
    tapes: Mapping[Path, Tape], store: TraceStore, refused: dict[Path, str]
) -> "dict[str, Tables]":
    """Build the tables of these tapes; put tapes that fail into `refused`, without loss of others.

    A tape may contain arbitrary data that no agent sends.
    """
    try:
        with restore_interrupts():
            return _build_tables(tapes.values(), store)
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


def write_run_rows(store: TraceStore, ids: Iterable[str]) -> None:
    """Write the rows of these runs, whose tapes are complete and in the store."""
    tapes = [read_tape(store.tapes / f"{id}.tape") for id in ids]
    with _report_write_errors(store):
        store.write_all(_build_tables(tapes, store))


def _build_tables(tapes: Iterable[Tape], store: TraceStore) -> "dict[str, Tables]":
    """Build the tables of each tape; the judge is loaded only if there is something to index."""
    from stumble.store.judged_rows import build_tables_by_run

    return build_tables_by_run(tapes, store)


def _restore_imports(store: TraceStore) -> None:
    """Write the rows of imports that the index lacks; the importers are loaded only for these."""
    if not store.imports():
        return
    from traces.importers.run_merge import restore_imports

    restore_imports(store)


def _seal_killed_tape(path: Path) -> None:
    """Seal the tape of a killed run, unless it is a link or has other links."""
    if path.stat().st_nlink == 1 and not path.is_symlink():
        seal_finished_tape(path)


def _describe_lost_tapes(store: TraceStore) -> list[str]:
    """Return a line for each link to a tape that no longer exists."""
    links = [path for path in store.tapes.glob("*.tape") if not path.exists()]
    return [f"{path.stem}: its tape {path.readlink()} is gone" for path in sorted(links)]


def write_batch(store: TraceStore, segment: str, tapes: Iterable[Tape]) -> None:
    """Write the rows of ended tapes, with all their twins, as one segment."""
    parts = list(_build_tables(tapes, store).values())
    names = {name for tables in parts for name in tables}
    together = {
        name: pa.concat_tables([tables[name] for tables in parts if name in tables])
        for name in names
    }
    with _report_write_errors(store):
        store.write(segment, together)


def list_relations() -> tuple[str, ...]:
    """Return the names of all relations."""
    return tuple(SCHEMAS)
