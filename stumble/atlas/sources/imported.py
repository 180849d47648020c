"""Runs of a source whose files `stumble import` reads, taken from the importer's rows."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from stumble.atlas.rows import PublishedCall, PublishedRun
from stumble.atlas.source_files import SourceFile

type ReadTables = Callable[[Path], Mapping[str, pa.Table]]


def read_imported_runs(
    file: SourceFile, read_tables: ReadTables, *, source: str, suite: str
) -> Iterator[PublishedRun]:
    """Yield the runs of a file as its importer reads them, under the file's own name."""
    with tempfile.TemporaryDirectory(prefix="atlas-") as folder:
        path = Path(folder, file.path.rpartition("/")[2])
        path.write_bytes(file.data)
        tables = read_tables(path)
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
