"""Parse a result's text into a document."""

import re
from collections.abc import Iterator
from copy import replace
from functools import lru_cache

from msgspec import Struct

from faults.document import plain_values
from faults.document.json_parser import parse_json_node
from faults.document.nodes import DocumentNode, NestedText
from faults.document.tables import parse_text_table
from faults.errors import NoInjectionSite
from faults.jsonpath import find_value_locations
from traces.conversation.volatile_fields import find_output_start

_ISLAND = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)
_END = re.compile(r"[ \t]*(?:\r\n|\n|\r|\Z)")


class TextDocument(Struct, frozen=True):
    """A text and the values in it."""

    text: str
    root: DocumentNode | None
    """JSON, JSON lines or a table; None if the text is plain."""
    words: tuple[DocumentNode, ...] = ()
    """Values in the surrounding plain text."""

    def nodes(self, path: str = "") -> tuple[DocumentNode, ...]:
        """Return all values in text order, or those at a JSONPath (RFC 9535) with all inside them.

        Raises NoInjectionSite if the path matches nothing.
        """
        all_nodes = tuple(self.root.walk()) if self.root else ()
        if not path:
            return tuple(sorted((*all_nodes, *self.words), key=lambda node: node.start))
        if self.root is None:
            raise NoInjectionSite(f"{path} leads nowhere in a plain text")
        locations = find_value_locations(path, self.root.value)
        matches = tuple(
            n for n in all_nodes if any(n.path[:k] in locations for k in range(len(n.path) + 1))
        )
        if not matches:
            raise NoInjectionSite(f"{path} leads nowhere in the result")
        return matches

    def raw(self, node: DocumentNode) -> str:
        """Return a node as it is written."""
        return self.text[node.start : node.stop]


@lru_cache(128)
def parse_document(text: str) -> TextDocument:
    """Parse a text; a client's lines before a command's output are left out."""
    start = find_output_start(text)
    inner = NestedText(text)
    islands = tuple(_find_json_islands(inner, start))
    if not islands:
        root = parse_text_table(inner, start)
        return TextDocument(
            text, root, () if root else tuple(plain_values.find_plain_values(inner, (), start))
        )
    if len(islands) == 1:
        root = islands[0]
    else:
        rows = tuple(_to_row_node(inner, number, node) for number, node in enumerate(islands))
        root = DocumentNode(
            kind="array", path=(), start=rows[0].start, stop=rows[-1].stop, items=rows
        )
    return TextDocument(text, root, tuple(_find_surrounding_values(inner, start, islands)))


def _find_json_islands(inner: NestedText, start: int) -> Iterator[DocumentNode]:
    """Yield the JSON containers that begin and end at line boundaries."""
    at = start
    while match := _ISLAND.search(inner.text, at):
        try:
            node, stop = parse_json_node(inner, match.end())
        except ValueError:
            at = match.end() + 1
            continue
        if _END.match(inner.text, stop) and node.items:
            yield node
        at = stop


def _to_row_node(inner: NestedText, number: int, node: DocumentNode) -> DocumentNode:
    begin = inner.text.rfind("\n", 0, node.start) + 1
    end = _END.match(inner.text, node.stop)
    assert end is not None
    moved = _prefix_node_path(node, number)
    return replace(moved, line=(begin, end.end()))


def _prefix_node_path(node: DocumentNode, number: int) -> DocumentNode:
    items = tuple(_prefix_node_path(item, number) for item in node.items)
    return replace(node, path=(number, *node.path), items=items)


def _find_surrounding_values(
    inner: NestedText, start: int, found: tuple[DocumentNode, ...]
) -> Iterator[DocumentNode]:
    for node in found:
        yield from plain_values.find_plain_values(inner, (), start, node.start)
        start = node.stop
    yield from plain_values.find_plain_values(inner, (), start)
