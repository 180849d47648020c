"""JSON documents in a file: one for the entire file, or one per line."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from traces.importers.shared.file_reader import (
    MAX_WHOLE_FILE,
    open_unpacked_file,
    read_unpacked_file,
)


def read_json_documents(path: Path) -> Iterator[object]:
    """Yield the document of a JSON file, or each document of JSON lines.

    Raises ValueError with the number of a line that is invalid, or too long to be read at once.
    """
    with open_unpacked_file(path) as file:
        first = file.readline(MAX_WHOLE_FILE + 1)
        try:
            document = orjson.loads(first)
        except orjson.JSONDecodeError:
            is_jsonl = False
        else:
            is_jsonl = True
            yield document
            for number, line in enumerate(iter(lambda: file.readline(MAX_WHOLE_FILE + 1), b""), 2):
                if len(line) > MAX_WHOLE_FILE:
                    raise ValueError(f"line {number}: it has more than {MAX_WHOLE_FILE >> 20} MB")
                if line.strip():
                    yield _parse_json_line(line, number)
    if not is_jsonl:
        try:
            yield orjson.loads(read_unpacked_file(path).removeprefix(b"\xef\xbb\xbf"))
        except orjson.JSONDecodeError as error:
            raise ValueError(f"it is no JSON: {error}") from None


def _parse_json_line(line: bytes, number: int) -> object:
    try:
        document: object = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"line {number}: {error}") from None
    return document
