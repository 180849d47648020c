"""JSON documents in a file: one for the entire file, one per line, or the elements of a list.

A line or element that cannot be parsed is a `ValueError` in its place, so that the others can be
read.
"""

from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from traces.importers.shared.file_reader import (
    MAX_WHOLE_FILE,
    open_unpacked_file,
    read_file_head,
    read_unpacked_file,
)
from traces.importers.shared.json_stream import read_list_objects
from traces.importers.shared.json_values import BOM, parse_json

MAX_RECORD = 32 << 20
"""Maximum bytes of an element of a list."""
type Record = tuple[str, object | ValueError]
"""The place of a document, such as `line 3`, and the document or why it cannot be read."""


def iter_json_records(path: Path) -> Iterator[Record]:
    """Yield the document of a JSON file, or each document of JSON lines."""
    with open_unpacked_file(path) as file:
        first = file.readline(MAX_WHOLE_FILE + 1).removeprefix(BOM)
        number, line = _next_line(file, 1)
        begins_alike = line.lstrip()[:1] == b"{" == first[:1]
        is_jsonl = bool(line) and (begins_alike or _is_json(first))
        if is_jsonl:
            yield _parse_record(first, "line 1")
            while line:
                yield _parse_record(line, f"line {number}")
                number, line = _next_line(file, number)
    if not is_jsonl:
        yield "", parse_json(read_unpacked_file(path))


def iter_any_records(path: Path) -> Iterator[Record]:
    """Yield the objects of a list, the document of a file, or each document of JSON lines."""
    return iter_list_records(path, None) if is_json_list(path) else iter_json_records(path)


def iter_list_records(path: Path, key: str | None, limit: int = MAX_RECORD) -> Iterator[Record]:
    """Yield the objects of the list `key` of a document, or of the list that it is."""
    name = key.rstrip("s") if key else "run"
    with open_unpacked_file(path) as file:
        elements = read_list_objects(file, key or "", 2 if key else 1, limit)
        for number, data in enumerate(_until_cut(elements), 1):
            where = f"{name} {number}"
            if isinstance(data, EOFError):
                yield where, ValueError("the file ends in the middle of it")
            elif isinstance(data, int):
                yield where, ValueError(f"it has {data >> 20} MB, more than {limit >> 20}")
            else:
                yield _parse_record(data, where)


def _next_line(file: BufferedReader, number: int) -> tuple[int, bytes]:
    """Return the next line that is not blank, and its number; empty at the end."""
    while line := file.readline(MAX_WHOLE_FILE + 1):
        number += 1
        if line.strip():
            return number, line
    return number, b""


def _is_json(data: bytes) -> bool:
    try:
        parse_json(data)
    except ValueError:
        return False
    return True


def _until_cut(elements: Iterator[bytes | int]) -> Iterator[bytes | int | EOFError]:
    try:
        yield from elements
    except EOFError as cut:
        yield cut


def _parse_record(data: bytes, where: str) -> Record:
    if len(data) > MAX_WHOLE_FILE:
        return where, ValueError(f"it has more than {MAX_WHOLE_FILE >> 20} MB")
    try:
        return where, parse_json(data)
    except ValueError as error:
        return where, error


def is_json_list(path: Path) -> bool:
    """Whether a file begins like a JSON list."""
    return read_file_head(path).lstrip()[:1] == b"["
