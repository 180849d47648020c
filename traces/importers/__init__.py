"""Importers of runs recorded by other tools, as tables of the store's relations.

A format is a module with `NAME`, `can_import(path)` (by content, never by name) and
`read_tables(path)`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from traces.importers import (
    inspect_ai,
    mini_swe_agent,
    openhands,
    otel,
    pipeline_csv,
    ramp,
    swe_agent,
    tau_bench,
)
from traces.importers.shared.file_reader import SHAPE_ERRORS
from traces.store.trace_store import TraceStore


class ImportFormat(Protocol):
    """The module-level names that a format module of this package provides."""

    @property
    def NAME(self) -> str: ...  # noqa: N802
    def can_import(self, path: Path) -> bool: ...
    def read_tables(self, path: Path) -> Mapping[str, pa.Table]: ...


FORMATS: tuple[ImportFormat, ...] = (
    tau_bench,
    ramp,
    pipeline_csv,
    mini_swe_agent,
    swe_agent,
    openhands,
    inspect_ai,
    otel,
)


def read_run_tables(path: Path) -> Mapping[str, pa.Table]:
    """Read all rows of a file with the first format that fits; ValueError if none does."""
    for each in FORMATS:
        if each.can_import(path):
            return read_format_tables(each, path)
    names = "; ".join(each.NAME for each in FORMATS)
    raise ValueError(f"{path}: none of the formats known here: {names}")


def read_format_tables(format: ImportFormat, path: Path) -> Mapping[str, pa.Table]:
    """Read all rows of a file with a format; ValueError also if a value has another shape."""
    try:
        return format.read_tables(path)
    except SHAPE_ERRORS as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"a value in it is not what the format says: {why}") from None


def import_to_store(store: TraceStore, path: Path) -> str:
    """Import a file: copy it into the store and write its rows; return their segment."""
    tables = read_run_tables(path)
    segment = store.keep_import(path).parent.name
    store.write(segment, tables)
    return segment


def restore_imports(store: TraceStore) -> tuple[str, ...]:
    """Write the rows of every stored import that the index lacks; return their segments."""
    present = set(store.segments())
    missing = [each for each in store.imports() if each.parent.name not in present]
    for each in missing:
        store.write(each.parent.name, read_run_tables(each))
    return tuple(each.parent.name for each in missing)
