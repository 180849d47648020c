"""Removal of imported runs: rows, tapes and kept sources."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from stumble.imports.detect_format import TrafficFormat, detect_file_format
from stumble.imports.to_tape import make_import_id
from traces.importers import read_format_tables
from traces.importers.run_merge import forget_runs
from traces.model import IMPORT_SOURCES
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape


class ForgottenImports(Struct, frozen=True, kw_only=True):
    """What was removed."""

    forgotten: tuple[str, ...]
    unknown: tuple[str, ...]
    """Ids that are of no imported run."""
    kept: Mapping[str, int]
    """Kept sources that still have a forgotten run beside others, with the number of the others."""


def list_runs_of_file(path: Path) -> list[str]:
    """Return the ids of the runs in a file. Raises ValueError if it cannot be read."""
    format = detect_file_format(path)
    if isinstance(format, TrafficFormat):
        return [make_import_id(format.source, path)]
    ids: list[str] = (
        read_format_tables(format, path).tables["trajectories"]["trajectory_id"].to_pylist()
    )
    return ids


def forget_imported_runs(store: TraceStore, ids: Iterable[str]) -> ForgottenImports:
    """Remove these runs, if they are imported ones."""
    ids = tuple(dict.fromkeys(ids))
    taped = [id for id in ids if _is_imported_tape(store.tapes / f"{id}.tape")]
    for id in taped:
        (store.tapes / f"{id}.tape").unlink()
        store.drop(id)
    segments = {each.parent.name for each in store.imports()}
    rows = [id for id, place in store.find_segments(ids).items() if place in segments]
    kept = forget_runs(store, rows)
    forgotten = (*taped, *rows)
    unknown = tuple(id for id in ids if id not in forgotten)
    return ForgottenImports(forgotten=forgotten, unknown=unknown, kept=kept)


def _is_imported_tape(path: Path) -> bool:
    if not path.exists() or path.is_symlink():
        return False
    try:
        return read_tape(path).trajectory.source in IMPORT_SOURCES
    except ValueError:
        return False
