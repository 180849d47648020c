"""Importers of runs recorded by other tools, as tables of the store's relations.

A format is a module with `NAME`, `can_import(path)` (by content, never by name), and
`read_runs(path)` for conversations, or `read_tables(path)` for tables of results.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import pyarrow as pa
from msgspec import Struct, field

from traces.importers import (
    agentdojo,
    aider_history,
    atif,
    claude_sessions,
    cline_tasks,
    codex_sessions,
    continue_sessions,
    gemini_sessions,
    human_trajectories,
    inspect_ai,
    langfuse,
    langsmith,
    mini_swe_agent,
    mlflow_traces,
    opencode_sessions,
    openhands,
    otel,
    pipeline_csv,
    ramp,
    swe_agent,
    tau2_bench,
    tau_bench,
    terminal_bench,
    who_and_when,
)
from traces.importers.shared.file_reader import SHAPE_ERRORS
from traces.importers.shared.http_traffic import ImportRemark
from traces.importers.shared.run_reader import ImportNotes, RawRun, read_conversations
from traces.store.usage_rows import PriceFunction, price_nothing


class TableFormat(Protocol):
    """The module-level names of a format that is a table of results."""

    @property
    def NAME(self) -> str: ...  # noqa: N802
    def can_import(self, path: Path) -> bool: ...
    def read_tables(self, path: Path) -> Mapping[str, pa.Table]: ...


class RunFormat(Protocol):
    """The module-level names of a format of conversations, which are read one by one."""

    @property
    def NAME(self) -> str: ...  # noqa: N802
    def can_import(self, path: Path) -> bool: ...
    def read_runs(self, path: Path) -> Iterable[RawRun]: ...


@runtime_checkable
class PartedFormat(Protocol):
    """A format of conversations that may go on in further files, which are read together."""

    def find_parts(self, path: Path) -> Sequence[Path]: ...


type ImportFormat = TableFormat | RunFormat


class ImportedTables(Struct, frozen=True, kw_only=True):
    """The rows of a file, and what of it was not read."""

    tables: Mapping[str, pa.Table]
    remarks: tuple[ImportRemark, ...] = ()
    keys: Mapping[str, object] = field(default_factory=dict)
    """What identifies each run besides its messages, by its id; none for tables of results."""
    restored: frozenset[str] = frozenset()
    """Runs whose ids an export of ours has: known if a run of that id is."""
    hints: frozenset[str] = frozenset()
    """Columns of `trajectories` that only the file's name tells."""


FORMATS: tuple[ImportFormat, ...] = (
    tau_bench,
    ramp,
    pipeline_csv,
    mini_swe_agent,
    swe_agent,
    openhands,
    inspect_ai,
    tau2_bench,
    atif,
    agentdojo,
    continue_sessions,
    who_and_when,
    terminal_bench,
    langfuse,
    langsmith,
    mlflow_traces,
    otel,
    human_trajectories,
    claude_sessions,
    codex_sessions,
    gemini_sessions,
    opencode_sessions,
    cline_tasks,
    aider_history,
)


def find_format(path: Path) -> ImportFormat | None:
    """Return the first format that a file fits."""
    return next((each for each in FORMATS if each.can_import(path)), None)


def read_run_tables(path: Path) -> Mapping[str, pa.Table]:
    """Read all rows of a file with the first format that fits; ValueError if none does."""
    if (format := find_format(path)) is not None:
        return read_format_tables(format, path).tables
    names = "; ".join(each.NAME for each in FORMATS)
    raise ValueError(f"{path}: none of the formats known here: {names}")


def read_format_tables(
    format: ImportFormat, path: Path, price: PriceFunction = price_nothing
) -> ImportedTables:
    """Read all rows of a file with a format; ValueError also if a value has another shape.

    `price` is of the tokens of responses whose cost the file does not have.
    """
    try:
        if not hasattr(format, "read_runs"):
            return ImportedTables(tables=format.read_tables(path))
        notes = ImportNotes()
        rows = read_conversations(format.read_runs(path), notes, price)
        return ImportedTables(
            tables=rows.to_tables(),
            remarks=notes.to_remarks(),
            keys=rows.keys,
            restored=frozenset(rows.restored),
            hints=getattr(format, "HINTS", frozenset()),
        )
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    except SHAPE_ERRORS as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"a value in it is not what the format says: {why}") from None
