"""Runs of a source whose files `stumble import` reads, taken from the importer's rows."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stumble.atlas.rows import PublishedCall, PublishedRun
from stumble.atlas.source_files import SourceFile
from traces.importers import ImportFormat, read_format_tables
from traces.importers.shared.run_reader import UNREAD


def read_imported_runs(
    file: SourceFile, format: ImportFormat, *, source: str, suite: str
) -> Iterator[PublishedRun]:
    """Yield the runs of a file as its importer reads them, under the file's own name.

    Raises ValueError if one of them cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="atlas-") as folder:
        path = Path(folder, file.path.rpartition("/")[2])
        path.write_bytes(file.data)
        read = read_format_tables(format, path)
    if lost := [each for each in read.remarks if each.lost and each.where != UNREAD]:
        raise ValueError(f"{file.path}: {lost[0].where}: {lost[0].why}")
    tables = read.tables
    calls: dict[str, list[PublishedCall]] = {}
    for row in tables["tool_calls"].to_pylist():
        calls.setdefault(row["trajectory_id"], []).append(_to_call(row))
    for row in tables["trajectories"].to_pylist():
        yield PublishedRun(
            run_id=f"{source}/{row['trajectory_id']}",
            agent=row["agent"],
            model=row["model"],
            suite=suite,
            task=row["task"],
            trial=row["trial"],
            passed=row["passed"],
            reward=row["reward"],
            ended=row["ended"],
            steps=row["n_steps"],
            seconds=row["seconds"],
            tokens=row["tokens"],
            cost_usd=row["cost_usd"],
            calls=tuple(calls.get(row["trajectory_id"], ())),
        )


def _to_call(row: Mapping[str, Any]) -> PublishedCall:
    return PublishedCall(
        step=row["step"],
        tool=row["tool"],
        arguments=row["arguments"],
        result=row["result"],
        is_error=row["is_error"],
    )
