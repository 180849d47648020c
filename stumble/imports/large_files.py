"""Parts of a file with many runs, so that an import needs memory for one of them.

A file is split if its lines, or the elements of its list, are runs of their own (`SPLITS` of its
format): runs are known by their content, whatever file they are in.
"""

from collections.abc import Iterator
from pathlib import Path

import orjson
from msgspec import Struct

from traces.importers import find_format, tau2_bench
from traces.importers.shared.file_reader import (
    MAX_WHOLE_FILE,
    open_unpacked_file,
    read_file_head,
)
from traces.importers.shared.json_stream import read_list_objects
from traces.importers.shared.jsonl import MAX_RECORD

PART_BYTES = 4 << 20
"""Bytes of a part, but for one record that is larger."""
_UNSPLIT = 1 << 20
"""Size of a file, as it is, up to which it is never split."""


class FilePart(Struct, frozen=True, kw_only=True):
    """A part of a file: how many records come before it."""

    file: Path
    before: int = 0
    why: str | None = None
    """Why a record in its place cannot be read."""


def may_have_parts(path: Path) -> bool:
    """Whether a file is large enough to be split."""
    return path.is_file() and path.stat().st_size > _UNSPLIT


def iter_parts(path: Path, folder: Path) -> Iterator[FilePart]:
    """Yield the parts of a file, written to a folder; the file itself if it is not split."""
    split = _find_split(path) if may_have_parts(path) else None
    if split is None:
        yield FilePart(file=path)
        return
    batch, size, before = list[bytes](), 0, 0
    for number, record in enumerate(split.records, 1):
        if isinstance(record, str):
            yield FilePart(file=path, before=number - 1, why=f"record {number:,}: {record}")
            record = b""
        batch.append(record)
        size += len(record)
        if size >= PART_BYTES:
            yield FilePart(file=_write_part(path, folder, before, split, batch), before=before)
            batch, size, before = [], 0, number
    if before and size:
        yield FilePart(file=_write_part(path, folder, before, split, batch), before=before)
    elif not before:
        yield FilePart(file=path)


class _Split(Struct, frozen=True, kw_only=True):
    """The records of a file, or why one cannot be read, and what a part has around them."""

    records: Iterator[bytes | str]
    begin: bytes = b""
    between: bytes = b""
    end: bytes = b""


def _write_part(path: Path, folder: Path, before: int, split: _Split, batch: list[bytes]) -> Path:
    target = folder / str(before) / path.name
    target.parent.mkdir()
    text = split.between.join(filter(None, batch))
    target.write_bytes(split.begin + text + split.end)
    return target


def _find_split(path: Path) -> _Split | None:
    """Return how a file is split; None if it has no records that are runs."""
    format = find_format(path)
    splits: frozenset[str] = getattr(format, "SPLITS", frozenset())
    if format is tau2_bench:
        info = orjson.dumps(tau2_bench.read_info(path))
        begin = b'{"info": ' + info + b', "simulations": ['
        records = _iter_elements(path, "simulations", 2)
        return _Split(records=records, begin=begin, between=b",\n", end=b"]}")
    if read_file_head(path).lstrip()[:1] == b"[":
        records = _iter_elements(path, "", 1)
        list_split = _Split(records=records, begin=b"[", between=b",\n", end=b"]")
        return list_split if "list" in splits else None
    return _Split(records=_iter_lines(path)) if "lines" in splits and _has_lines(path) else None


def _has_lines(path: Path) -> bool:
    with open_unpacked_file(path) as file:
        try:
            return isinstance(orjson.loads(file.readline(MAX_WHOLE_FILE)), dict)
        except ValueError:
            return False


def _iter_lines(path: Path) -> Iterator[bytes | str]:
    with open_unpacked_file(path) as file:
        while line := file.readline(MAX_WHOLE_FILE):
            yield line


def _iter_elements(path: Path, key: str, depth: int) -> Iterator[bytes | str]:
    with open_unpacked_file(path) as file:
        try:
            for each in read_list_objects(file, key, depth, MAX_RECORD):
                if isinstance(each, int):
                    yield f"it has {each >> 20} MB, more than {MAX_RECORD >> 20}"
                else:
                    yield each
        except EOFError:
            yield "the file ends in the middle of it"
