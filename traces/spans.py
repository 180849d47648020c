"""Where values stand in JSON text, by byte offset, so that one can be replaced and no other byte.

Parsing and dumping again is not an option: it loses big integers, number forms and duplicate
keys, and it moves the prefix that providers cache by. A token regex runs over strings at the
speed of C; callers have checked that the text is valid JSON.
"""

import re
from collections.abc import Iterator

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}]+")
_SPACE = re.compile(rb"[\s,:]*")


def end(text: bytes, start: int) -> int:
    """The offset just behind the value that begins at `start`; ValueError if it never ends."""
    opening = text[start : start + 1]
    if opening == b'"':
        found = _STRING.match(text, start)
    elif opening in (b"{", b"["):
        return _container_end(text, start)
    else:
        found = _SCALAR.match(text, start)
    if found is None:
        raise ValueError(f"no JSON value at byte {start}")
    return found.end()


def _container_end(text: bytes, start: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        match token[0]:
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
                if depth == 0:
                    return token.end()
    raise ValueError(f"the JSON value at byte {start} never ends")


def _skip(text: bytes, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def items(text: bytes, start: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of each item of the array that begins at `start`."""
    at = _skip(text, start + 1)
    while text[at : at + 1] != b"]":
        stop = end(text, at)
        yield at, stop
        at = _skip(text, stop)


def members(text: bytes, start: int) -> dict[bytes, tuple[int, int]]:
    """Raw key (without quotes) to (start, stop) of its value; the last of equal keys wins."""
    return _members(text, start)[0]


def _members(text: bytes, start: int) -> tuple[dict[bytes, tuple[int, int]], int]:
    found: dict[bytes, tuple[int, int]] = {}
    at = _skip(text, start + 1)
    while text[at : at + 1] != b"}":
        key_stop = end(text, at)
        value = _skip(text, key_stop)
        stop = end(text, value)
        found[text[at + 1 : key_stop - 1]] = (value, stop)
        at = _skip(text, stop)
    return found, at + 1


def objects(text: bytes, span: tuple[int, int] | None) -> Iterator[dict[bytes, tuple[int, int]]]:
    """`members` of each object in the array at `span`; none where no array stands there."""
    if span is None or text[span[0] : span[0] + 1] != b"[":
        return
    at = _skip(text, span[0] + 1)
    while text[at : at + 1] != b"]":
        if text[at : at + 1] == b"{":
            found, stop = _members(text, at)
            yield found
        else:
            stop = end(text, at)
        at = _skip(text, stop)


def root(text: bytes) -> int:
    """The offset of the outermost value."""
    return _skip(text, 0)
