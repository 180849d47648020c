"""New text for places in a document, and nothing else touched."""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from faults.document.nodes import Node
from faults.document.reading import Document


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """`text` in place of `document.text[start:stop]`."""

    start: int
    stop: int
    text: str


def changed(document: Document, changes: Iterable[Change]) -> str:
    """The text after all changes, which do not overlap."""
    pieces, at = [], 0
    for change in sorted(changes):
        if change.start < at:
            raise ValueError(f"changes overlap at {change.start}")
        pieces += [document.text[at : change.start], change.text]
        at = change.stop
    return "".join([*pieces, document.text[at:]])


def instead(node: Node, said: str) -> Change:
    """Another value for a node, which stays of its kind: `said` as it reads with no escapes."""
    return Change(node.start, node.stop, _escaped(said, node.quoted + bool(node.literal)))


def retyped(node: Node, written: str) -> Change:
    """Other JSON in place of a value, whatever it was."""
    return Change(*node.span, _escaped(written, node.quoted))


def renamed(node: Node, name: str) -> Change:
    """Another name for a member; ValueError for what has no name of its own."""
    if node.key is None:
        raise ValueError(f"{node.path} is no member")
    return Change(*node.key[1:], _escaped(name, node.quoted + 1))


def without(container: Node, gone: Collection[int]) -> Iterator[Change]:
    """A list or object without some of its items: commas stay right, of rows the lines go."""
    items = container.items
    for lost, run in groupby(range(len(items)), key=lambda at: at in gone):
        if not lost:
            continue
        first, *rest = run
        last = rest[-1] if rest else first
        lines = items[first].line, items[last].line
        if lines[0] and lines[1]:
            yield Change(lines[0][0], lines[1][1], "")
        elif first:
            yield Change(items[first - 1].span[1], items[last].span[1], "")
        elif last + 1 < len(items):
            yield Change(items[first].begin, items[last + 1].begin, "")
        else:
            yield Change(items[first].begin, items[last].span[1], "")


def _escaped(said: str, depth: int) -> str:
    for _ in range(depth):
        said = json.dumps(said, ensure_ascii=False)[1:-1]
    return said
