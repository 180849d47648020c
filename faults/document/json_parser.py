"""Parse JSON into nodes with offsets."""

import json
import re
from copy import replace

from faults.document import plain_values
from faults.document.nodes import MAX_NESTING, DocumentNode, NestedText
from faults.jsonpath import JsonLocation

_BLANK = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\.)*+)"')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u.{4}|\\.|.", re.DOTALL
)
_WORDS = {"true": "bool", "false": "bool", "null": "null"}


def parse_json_node(
    inner: NestedText, start: int = 0, path: JsonLocation = ()
) -> tuple[DocumentNode, int]:
    """Parse the JSON value at `start` and return it with its end; raises ValueError without one."""
    return _parse_json_value(inner, _skip_json_blanks(inner.text, start), path, 0)


def _parse_json_value(
    inner: NestedText, at: int, path: JsonLocation, depth: int
) -> tuple[DocumentNode, int]:
    text = inner.text
    if depth > MAX_NESTING:
        raise ValueError("nested too deep")
    match text[at : at + 1]:
        case "{" | "[":
            return _parse_json_container(inner, at, path, depth)
        case '"':
            return _parse_json_string(inner, at, path, depth)
    if match := _NUMBER.match(text, at):
        return _make_scalar_node(inner, "number", match[0], at, path), match.end()
    for word, kind in _WORDS.items():
        if text.startswith(word, at):
            return _make_scalar_node(inner, kind, word, at, path), at + len(word)
    raise ValueError(f"no JSON value at {at}")


def _make_scalar_node(
    inner: NestedText, kind: str, text: str, at: int, path: JsonLocation
) -> DocumentNode:
    return DocumentNode(
        kind=kind,  # type: ignore[arg-type]
        path=path,
        start=inner.to_outer_offset(at),
        stop=inner.to_outer_offset(at + len(text)),
        text=text,
        quote_depth=inner.quote_depth,
    )


def _parse_json_container(
    inner: NestedText, at: int, path: JsonLocation, depth: int
) -> tuple[DocumentNode, int]:
    text, begin, items = inner.text, at, list[DocumentNode]()
    closing = "}" if text[at] == "{" else "]"
    at = _skip_json_blanks(text, at + 1)
    while text[at : at + 1] != closing:
        if items:
            at = _skip_json_blanks(text, _expect_json_mark(text, at, ","))
        step: str | int = len(items)
        key = None
        if closing == "}":
            name, stop = _read_quoted_string(text, at)
            step, key = (
                name,
                (
                    inner.to_outer_offset(at),
                    inner.to_outer_offset(at + 1),
                    inner.to_outer_offset(stop - 1),
                ),
            )
            at = _skip_json_blanks(
                text, _expect_json_mark(text, _skip_json_blanks(text, stop), ":")
            )
        item, at = _parse_json_value(inner, at, (*path, step), depth + 1)
        items.append(replace(item, key=key) if key else item)
        at = _skip_json_blanks(text, at)
    node = DocumentNode(
        kind="object" if closing == "}" else "array",
        path=path,
        start=inner.to_outer_offset(begin),
        stop=inner.to_outer_offset(at + 1),
        items=tuple(items),
        quote_depth=inner.quote_depth,
    )
    return node, at + 1


def _parse_json_string(
    inner: NestedText, at: int, path: JsonLocation, depth: int
) -> tuple[DocumentNode, int]:
    text, stop = _read_quoted_string(inner.text, at)
    inside = _to_nested_text(inner, at + 1, stop - 1, text)
    kind = plain_values.classify_plain_value(text)
    items: tuple[DocumentNode, ...] = ()
    if kind == "text":
        items = _parse_nested_json(inside, path, depth) or tuple(
            plain_values.find_plain_values(inside, path)
        )
    node = DocumentNode(
        kind=kind,
        path=path,
        start=inner.to_outer_offset(at + 1),
        stop=inner.to_outer_offset(stop - 1),
        text=text,
        items=items,
        quote_depth=inner.quote_depth,
        literal=(inner.to_outer_offset(at), inner.to_outer_offset(stop)),
    )
    return node, stop


def _parse_nested_json(
    inside: NestedText, path: JsonLocation, depth: int
) -> tuple[DocumentNode, ...]:
    """Parse the JSON in a string; empty unless it is exactly one container."""
    if inside.text.lstrip()[:1] not in ("{", "["):
        return ()
    try:
        node, stop = _parse_json_value(inside, _skip_json_blanks(inside.text, 0), path, depth + 1)
    except ValueError:
        return ()
    return (node,) if _skip_json_blanks(inside.text, stop) == len(inside.text) else ()


def _read_quoted_string(text: str, at: int) -> tuple[str, int]:
    match = _STRING.match(text, at)
    if match is None:
        raise ValueError(f"no JSON string at {at}")
    value = json.loads(match[0]) if "\\" in match[1] else match[1]
    return value, match.end()


def _to_nested_text(inner: NestedText, start: int, stop: int, text: str) -> NestedText:
    """Return a string's characters with the offset of each."""
    if inner.offsets is None and stop - start == len(text):
        return NestedText(text, inner.to_outer_offset(start), None, inner.quote_depth + 1)
    offsets = [
        inner.to_outer_offset(match.start()) for match in _ESCAPE.finditer(inner.text, start, stop)
    ]
    return NestedText(text, 0, (*offsets, inner.to_outer_offset(stop)), inner.quote_depth + 1)


def _skip_json_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _expect_json_mark(text: str, at: int, what: str) -> int:
    if not text.startswith(what, at):
        raise ValueError(f"no JSON at {at}")
    return at + 1
