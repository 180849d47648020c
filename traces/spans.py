"""Where values stand in JSON text, by byte offset, so that one can be replaced and no other byte.

Parsing and dumping again is not an option: it loses big integers, number forms and duplicate
keys, and it moves the prefix that providers cache by. A value is passed over by one regex, at
the speed of C; callers have checked that the text is valid JSON.
"""

import re
from collections.abc import Iterator

type Span = tuple[int, int]
"""Where a value stands: the offset of its first byte, and that behind its last."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_INSIDE = rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")'
_DEPTH = 8


def _nested(depth: int) -> bytes:
    """A container with at most so many in it, one in the other; nothing of it is tried twice."""
    inside = _INSIDE if depth == 0 else rb"(?:" + _INSIDE + rb"|" + _nested(depth - 1) + rb")"
    return rb"[{\[]" + inside + rb"*+[}\]]"


_CONTAINER = re.compile(_nested(_DEPTH), re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}]+")
_KEY = re.compile(rb'[\s,]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"\s*+:\s*+', re.DOTALL)
_MEMBER = re.compile(
    _KEY.pattern
    + rb"("
    + rb"|".join((_STRING.pattern, rb'[^\s,\]}"{\[]++', _CONTAINER.pattern))
    + rb")",
    re.DOTALL,
)
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
    if found := _CONTAINER.match(text, start):
        return found.end()
    # Deeper than that, or it never ends.
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
    at = start + 1
    while True:
        while member := _MEMBER.match(text, at):
            found[member[1]] = member.span(2)
            at = member.end()
        at = _skip(text, at)
        if text[at : at + 1] == b"}":
            return found, at + 1
        # A value that is nested deeper than the expression goes.
        key_stop = end(text, at)
        value = _skip(text, key_stop)
        stop = end(text, value)
        found[text[at + 1 : key_stop - 1]] = (value, stop)
        at = stop


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


def array(text: bytes, key: bytes) -> int | None:
    """Where the first array begins that the outermost object has under `key`."""
    at = root(text) + 1
    while name := _KEY.match(text, at):
        at = name.end()
        if name[1] == key and text[at : at + 1] == b"[":
            return at
        at = end(text, at)
    return None


def root(text: bytes) -> int:
    """The offset of the outermost value."""
    return _skip(text, 0)
