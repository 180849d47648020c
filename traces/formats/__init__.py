"""Runs that others recorded, as tables of the store's relations.

A format is a module with `NAME`, `fits(path)` (by content, never by name) and `tables(path)`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from traces.formats import (
    cohort,
    inspect_log,
    mini_swe,
    openhands,
    ramp,
    spans,
    swe_agent,
    tau,
)
from traces.formats.files import MISSHAPEN
from traces.store import Store


class Format(Protocol):
    """What a module of this package provides, as module-level names."""

    @property
    def NAME(self) -> str: ...  # noqa: N802
    def fits(self, path: Path) -> bool: ...
    def tables(self, path: Path) -> Mapping[str, pa.Table]: ...


FORMATS: tuple[Format, ...] = (
    tau,
    ramp,
    cohort,
    mini_swe,
    swe_agent,
    openhands,
    inspect_log,
    spans,
)


def read(path: Path) -> Mapping[str, pa.Table]:
    """All rows of a file, by the first format it fits; ValueError if it fits none."""
    for each in FORMATS:
        if each.fits(path):
            return rows(each, path)
    looked_for = "; ".join(each.NAME for each in FORMATS)
    raise ValueError(f"{path}: none of the formats known here: {looked_for}")


def rows(format: Format, path: Path) -> Mapping[str, pa.Table]:
    """All rows of a file by a format; ValueError also where a value in it has another shape."""
    try:
        return format.tables(path)
    except MISSHAPEN as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"a value in it is not what the format says: {why}") from None


def bring(store: Store, path: Path) -> str:
    """Import a file: its source is kept, its rows are written; the segment it is in."""
    tables = read(path)
    segment = store.keep(path).parent.name
    store.write(segment, tables)
    return segment


def restore(store: Store) -> tuple[str, ...]:
    """Write the rows of every kept import that the index lacks; the segments written."""
    present = set(store.segments())
    lost = [kept for kept in store.imports() if kept.parent.name not in present]
    for kept in lost:
        store.write(kept.parent.name, read(kept))
    return tuple(kept.parent.name for kept in lost)
