"""Bundles: the rows of many segments in one Parquet file for each relation.

    index/bundles/<name>/<relation>.parquet         with the segment of each row
    index/bundles/<name>/segments                   their names

A bundle is written aside and renamed, so it is there whole or not at all, and it is never changed:
segments in it are replaced after it was packed.
"""

import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from traces.store.schema import SCHEMAS

SEGMENT_COLUMN = pa.field("segment", pa.string())
_EMPTY = "_empty"
"""A bundle without rows: a pattern has to match at least one file."""


class SegmentBundles:
    """The bundles of an index."""

    def __init__(self, index: Path) -> None:
        self.folder = index / "bundles"
        self._aside = index / ".bundles"

    def write(self, segments: Mapping[str, Mapping[str, pa.Table]]) -> None:
        """Write segments as one bundle; they must be in no other.

        Its name is new: packs list the bundles in them.
        """
        self.write_rows(segments, dict(_join_segments(segments)))

    def write_rows(self, segments: Iterable[str], rows: Mapping[str, pa.Table]) -> None:
        """Write the rows of segments, by relation, each with its segment, as one bundle."""
        self._write_folder(uuid.uuid4().hex, segments, rows)

    def prepare_empty(self) -> None:
        """Write the bundle without rows, unless it is there with all relations."""
        folder = self.folder / _EMPTY
        if all((folder / f"{relation}.parquet").exists() for relation in SCHEMAS):
            return
        shutil.rmtree(folder, ignore_errors=True)
        self._write_folder(_EMPTY, (), dict(_join_segments({})))

    def names(self) -> tuple[str, ...]:
        """Return the names of all bundles with rows, sorted."""
        return tuple(sorted(path.name for path in self.folder.glob("[!._]*")))

    def segments(self) -> set[str]:
        """Return the names of the segments in all bundles."""
        return {name for bundle in self.names() for name in self.segments_of(bundle)}

    def segments_of(self, name: str) -> tuple[str, ...]:
        """Return the names of the segments in one bundle."""
        return tuple((self.folder / name / "segments").read_text().split())

    def path(self, name: str, relation: str) -> Path:
        """Return the file of one relation in a bundle."""
        return self.folder / name / f"{relation}.parquet"

    def paths(self, relation: str) -> tuple[Path, ...]:
        """Return the files of one relation in all bundles that have rows of it."""
        files = (self.path(name, relation) for name in self.names())
        return tuple(file for file in files if file.exists())

    def remove(self, name: str) -> None:
        """Remove a bundle that was packed, by one rename first."""
        aside = self._aside / f"{name}.removed"
        shutil.rmtree(aside, ignore_errors=True)
        self._aside.mkdir(exist_ok=True)
        (self.folder / name).rename(aside)
        shutil.rmtree(aside)

    def _write_folder(
        self, name: str, segments: Iterable[str], tables: Mapping[str, pa.Table]
    ) -> None:
        aside = self._aside / name
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        for relation, rows in tables.items():
            pq.write_table(rows, aside / f"{relation}.parquet", compression="zstd")
        (aside / "segments").write_text("\n".join(sorted(segments)))
        self.folder.mkdir(exist_ok=True)
        aside.rename(self.folder / name)


def _join_segments(
    segments: Mapping[str, Mapping[str, pa.Table]],
) -> Iterator[tuple[str, pa.Table]]:
    """Yield each relation that has rows, and all of them if there are no segments."""
    for relation, schema in SCHEMAS.items():
        parts = [
            tables[relation].append_column(
                SEGMENT_COLUMN, pa.repeat(pa.scalar(name), tables[relation].num_rows)
            )
            for name, tables in segments.items()
            if relation in tables and tables[relation].num_rows
        ]
        if parts:
            yield relation, pa.concat_tables(parts)
        elif not segments:
            yield relation, schema.append(SEGMENT_COLUMN).empty_table()
