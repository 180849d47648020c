"""Byte offsets of values in JSON text, to replace one value without touching any other byte.

Parsing and dumping would lose big integers, number forms and duplicate keys, and change the prefix
on which providers key their caches. One regex skips a value, at the speed of C; callers have
checked that the text is valid JSON.
"""

import re
from collections.abc import Iterator

type JsonSpan = tuple[int, int]
"""Offsets of a value: of its first byte, and after its last one."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_INSIDE = rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")'
_DEPTH = 8


def _build_container_pattern(depth: int) -> bytes:
    """Build a pattern for a container nested up to `depth` levels, without backtracking."""
    inside = (
        _INSIDE
        if depth == 0
        else rb"(?:" + _INSIDE + rb"|" + _build_container_pattern(depth - 1) + rb")"
    )
    return rb"[{\[]" + inside + rb"*+[}\]]"


_CONTAINER = re.compile(_build_container_pattern(_DEPTH), re.DOTALL)
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


def find_json_end(text: bytes, start: int) -> int:
    """Return the offset after the value at `start`; raise ValueError if it is incomplete."""
    opening = text[start : start + 1]
    if opening == b'"':
        match = _STRING.match(text, start)
    elif opening in (b"{", b"["):
        return _find_container_end(text, start)
    else:
        match = _SCALAR.match(text, start)
    if match is None:
        raise ValueError(f"no JSON value at byte {start}")
    return match.end()


def _find_container_end(text: bytes, start: int) -> int:
    if match := _CONTAINER.match(text, start):
        return match.end()
    # Nested deeper than the pattern, or incomplete.
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


def _skip_separators(text: bytes, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def iter_json_items(text: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of each item of the array at `start`."""
    at = _skip_separators(text, start + 1)
    while text[at : at + 1] != b"]":
        stop = find_json_end(text, at)
        yield at, stop
        at = _skip_separators(text, stop)


def find_json_members(text: bytes, start: int) -> dict[bytes, tuple[int, int]]:
    """Map each raw key (without quotes) to (start, stop) of its value; the last duplicate wins."""
    return _scan_json_members(text, start)[0]


def _scan_json_members(text: bytes, start: int) -> tuple[dict[bytes, tuple[int, int]], int]:
    members: dict[bytes, tuple[int, int]] = {}
    at = start + 1
    while True:
        while member := _MEMBER.match(text, at):
            members[member[1]] = member.span(2)
            at = member.end()
        at = _skip_separators(text, at)
        if text[at : at + 1] == b"}":
            return members, at + 1
        # The value is nested deeper than the pattern.
        key_stop = find_json_end(text, at)
        value = _skip_separators(text, key_stop)
        stop = find_json_end(text, value)
        members[text[at + 1 : key_stop - 1]] = (value, stop)
        at = stop


def iter_json_objects(
    text: bytes, span: tuple[int, int] | None
) -> Iterator[dict[bytes, tuple[int, int]]]:
    """Yield `find_json_members` of each object in the array at `span`; nothing if there is no
    array."""
    if span is None or text[span[0] : span[0] + 1] != b"[":
        return
    at = _skip_separators(text, span[0] + 1)
    while text[at : at + 1] != b"]":
        if text[at : at + 1] == b"{":
            members, stop = _scan_json_members(text, at)
            yield members
        else:
            stop = find_json_end(text, at)
        at = _skip_separators(text, stop)


def find_json_array(text: bytes, key: bytes) -> int | None:
    """Return the offset of the first array under `key` in the outermost object."""
    at = find_json_root(text) + 1
    while name := _KEY.match(text, at):
        at = name.end()
        if name[1] == key and text[at : at + 1] == b"[":
            return at
        at = find_json_end(text, at)
    return None


def find_json_root(text: bytes) -> int:
    """Return the offset of the outermost value."""
    return _skip_separators(text, 0)
