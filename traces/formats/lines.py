"""JSON documents out of a file: one that is the whole file, or one on each line."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from traces.formats.files import WHOLE, content, opened


def documents(path: Path) -> Iterator[object]:
    """The document of a JSON file, or those of JSON lines one after the other.

    ValueError with the number of the line that is none, or is too long to be read at once.
    """
    with opened(path) as file:
        first = file.readline(WHOLE + 1)
        try:
            document = orjson.loads(first)
        except orjson.JSONDecodeError:
            lines = False
        else:
            lines = True
            yield document
            for number, line in enumerate(iter(lambda: file.readline(WHOLE + 1), b""), 2):
                if len(line) > WHOLE:
                    raise ValueError(f"line {number}: it has more than {WHOLE >> 20} MB")
                if line.strip():
                    yield _document(line, number)
    if not lines:
        try:
            yield orjson.loads(content(path).removeprefix(b"\xef\xbb\xbf"))
        except orjson.JSONDecodeError as error:
            raise ValueError(f"it is no JSON: {error}") from None


def _document(line: bytes, number: int) -> object:
    try:
        found: object = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"line {number}: {error}") from None
    return found
