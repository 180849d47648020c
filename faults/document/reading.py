"""A result's text as a document."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from faults.document import words
from faults.document.members import json_node
from faults.document.nodes import Inner, Node
from faults.document.tables import table
from faults.nosite import NoSite
from faults.query import locations
from traces.volatile import printed

_ISLAND = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)
_END = re.compile(r"[ \t]*(?:\r\n|\n|\r|\Z)")


@dataclass(frozen=True, slots=True)
class Document:
    """A text and what stands in it."""

    text: str
    root: Node | None
    """JSON, lines of JSON or a table; None where the text is only words."""
    words: tuple[Node, ...] = ()
    """Of the text around it."""

    def nodes(self, path: str = "") -> tuple[Node, ...]:
        """All values, in the order of the text, or those at a JSONPath (RFC 9535).

        NoSite where the path leads nowhere; what stands at it brings along what is in it.
        """
        every = tuple(self.root.walk()) if self.root else ()
        if not path:
            return tuple(sorted((*every, *self.words), key=lambda node: node.start))
        if self.root is None:
            raise NoSite(f"{path} leads nowhere in a plain text")
        places = locations(path, self.root.value)
        held = tuple(n for n in every if any(n.path[:k] in places for k in range(len(n.path) + 1)))
        if not held:
            raise NoSite(f"{path} leads nowhere in the result")
        return held

    def raw(self, node: Node) -> str:
        """A node as it is written."""
        return self.text[node.start : node.stop]


@lru_cache(128)
def read(text: str) -> Document:
    """The document that a text is. What a client says before a command's output is left out."""
    start = printed(text)
    inner = Inner(text)
    found = tuple(_islands(inner, start))
    if not found:
        root = table(inner, start)
        return Document(text, root, () if root else tuple(words.words(inner, (), start)))
    if len(found) == 1:
        root = found[0]
    else:
        rows = tuple(_row(inner, number, node) for number, node in enumerate(found))
        root = Node(kind="array", path=(), start=rows[0].start, stop=rows[-1].stop, items=rows)
    return Document(text, root, tuple(_around(inner, start, found)))


def _islands(inner: Inner, start: int) -> Iterator[Node]:
    """The JSON containers, each of which begins a line and ends one."""
    at = start
    while found := _ISLAND.search(inner.text, at):
        try:
            node, stop = json_node(inner, found.end())
        except ValueError:
            at = found.end() + 1
            continue
        if _END.match(inner.text, stop) and node.items:
            yield node
        at = stop


def _row(inner: Inner, number: int, node: Node) -> Node:
    begin = inner.text.rfind("\n", 0, node.start) + 1
    end = _END.match(inner.text, node.stop)
    assert end is not None
    moved = _below(node, number)
    return replace(moved, line=(begin, end.end()))


def _below(node: Node, number: int) -> Node:
    items = tuple(_below(item, number) for item in node.items)
    return replace(node, path=(number, *node.path), items=items)


def _around(inner: Inner, start: int, found: tuple[Node, ...]) -> Iterator[Node]:
    for node in found:
        yield from words.words(inner, (), start, node.start)
        start = node.stop
    yield from words.words(inner, (), start)
