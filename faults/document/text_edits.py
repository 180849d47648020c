"""Edits of a document: new text for ranges; all other text is unchanged."""

import json
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from msgspec import Struct

from faults.document.nodes import DocumentNode
from faults.document.parser import TextDocument


class DocumentEdit(Struct, frozen=True, order=True):
    """Replaces `document.text[start:stop]` with `text`."""

    start: int
    stop: int
    text: str


def apply_document_edits(document: TextDocument, changes: Iterable[DocumentEdit]) -> str:
    """Return the text after all changes, which must not overlap."""
    pieces, at = [], 0
    for change in sorted(changes):
        if change.start < at:
            raise ValueError(f"changes overlap at {change.start}")
        pieces += [document.text[at : change.start], change.text]
        at = change.stop
    return "".join([*pieces, document.text[at:]])


def make_value_edit(node: DocumentNode, text: str) -> DocumentEdit:
    """Return the edit for another value of the same kind; `said` is unescaped."""
    return DocumentEdit(
        node.start, node.stop, _escape_json_text(text, node.quote_depth + bool(node.literal))
    )


def make_json_edit(node: DocumentNode, written: str) -> DocumentEdit:
    """Return the edit that puts other JSON in place of any value."""
    return DocumentEdit(*node.span, _escape_json_text(written, node.quote_depth))


def make_name_edit(node: DocumentNode, name: str) -> DocumentEdit:
    """Return the edit that renames a member; raises ValueError if the node has no name."""
    if node.key is None:
        raise ValueError(f"{node.path} is no member")
    return DocumentEdit(*node.key[1:], _escape_json_text(name, node.quote_depth + 1))


def make_removal_edits(container: DocumentNode, gone: Collection[int]) -> Iterator[DocumentEdit]:
    """Yield the edits that remove items of a list or object, with commas or complete lines."""
    items = container.items
    for is_removed, run in groupby(range(len(items)), key=lambda at: at in gone):
        if not is_removed:
            continue
        first, *rest = run
        last = rest[-1] if rest else first
        lines = items[first].line, items[last].line
        if lines[0] and lines[1]:
            yield DocumentEdit(lines[0][0], lines[1][1], "")
        elif first:
            yield DocumentEdit(items[first - 1].span[1], items[last].span[1], "")
        elif last + 1 < len(items):
            yield DocumentEdit(items[first].begin, items[last + 1].begin, "")
        else:
            yield DocumentEdit(items[first].begin, items[last].span[1], "")


def _escape_json_text(text: str, depth: int) -> str:
    for _ in range(depth):
        text = json.dumps(text, ensure_ascii=False)[1:-1]
    return text
