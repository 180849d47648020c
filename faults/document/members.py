"""JSON, read into nodes."""

import json
import re
from dataclasses import replace

from faults.document import words
from faults.document.nodes import NESTED, Inner, Node
from faults.query import Path

_BLANK = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\.)*+)"')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u.{4}|\\.|.", re.DOTALL
)
_WORDS = {"true": "bool", "false": "bool", "null": "null"}


def json_node(inner: Inner, start: int = 0, path: Path = ()) -> tuple[Node, int]:
    """The JSON value that begins at `start`, and where it ends; ValueError where there is none."""
    return _value(inner, _blank(inner.text, start), path, 0)


def _value(inner: Inner, at: int, path: Path, depth: int) -> tuple[Node, int]:
    text = inner.text
    if depth > NESTED:
        raise ValueError("nested too deep")
    match text[at : at + 1]:
        case "{" | "[":
            return _container(inner, at, path, depth)
        case '"':
            return _string(inner, at, path, depth)
    if found := _NUMBER.match(text, at):
        return _scalar(inner, "number", found[0], at, path), found.end()
    for word, kind in _WORDS.items():
        if text.startswith(word, at):
            return _scalar(inner, kind, word, at, path), at + len(word)
    raise ValueError(f"no JSON value at {at}")


def _scalar(inner: Inner, kind: str, said: str, at: int, path: Path) -> Node:
    return Node(
        kind=kind,  # type: ignore[arg-type]
        path=path,
        start=inner.spot(at),
        stop=inner.spot(at + len(said)),
        said=said,
        quoted=inner.quoted,
    )


def _container(inner: Inner, at: int, path: Path, depth: int) -> tuple[Node, int]:
    text, begin, items = inner.text, at, list[Node]()
    closing = "}" if text[at] == "{" else "]"
    at = _blank(text, at + 1)
    while text[at : at + 1] != closing:
        if items:
            at = _blank(text, _expect(text, at, ","))
        step: str | int = len(items)
        key = None
        if closing == "}":
            name, stop = _quoted(text, at)
            step, key = name, (inner.spot(at), inner.spot(at + 1), inner.spot(stop - 1))
            at = _blank(text, _expect(text, _blank(text, stop), ":"))
        item, at = _value(inner, at, (*path, step), depth + 1)
        items.append(replace(item, key=key) if key else item)
        at = _blank(text, at)
    node = Node(
        kind="object" if closing == "}" else "array",
        path=path,
        start=inner.spot(begin),
        stop=inner.spot(at + 1),
        items=tuple(items),
        quoted=inner.quoted,
    )
    return node, at + 1


def _string(inner: Inner, at: int, path: Path, depth: int) -> tuple[Node, int]:
    said, stop = _quoted(inner.text, at)
    inside = _inside(inner, at + 1, stop - 1, said)
    kind = words.kind(said)
    items: tuple[Node, ...] = ()
    if kind == "text":
        items = _opened(inside, path, depth) or tuple(words.words(inside, path))
    node = Node(
        kind=kind,
        path=path,
        start=inner.spot(at + 1),
        stop=inner.spot(stop - 1),
        said=said,
        items=items,
        quoted=inner.quoted,
        literal=(inner.spot(at), inner.spot(stop)),
    )
    return node, stop


def _opened(inside: Inner, path: Path, depth: int) -> tuple[Node, ...]:
    """The JSON that a string holds, if it holds a container and nothing else."""
    if inside.text.lstrip()[:1] not in ("{", "["):
        return ()
    try:
        node, stop = _value(inside, _blank(inside.text, 0), path, depth + 1)
    except ValueError:
        return ()
    return (node,) if _blank(inside.text, stop) == len(inside.text) else ()


def _quoted(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    if found is None:
        raise ValueError(f"no JSON string at {at}")
    said = json.loads(found[0]) if "\\" in found[1] else found[1]
    return said, found.end()


def _inside(inner: Inner, start: int, stop: int, said: str) -> Inner:
    """What a string says, with the place of each of its characters."""
    if inner.spots is None and stop - start == len(said):
        return Inner(said, inner.spot(start), None, inner.quoted + 1)
    spots = [inner.spot(found.start()) for found in _ESCAPE.finditer(inner.text, start, stop)]
    return Inner(said, 0, (*spots, inner.spot(stop)), inner.quoted + 1)


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None
    return found.end()


def _expect(text: str, at: int, what: str) -> int:
    if not text.startswith(what, at):
        raise ValueError(f"no JSON at {at}")
    return at + 1
