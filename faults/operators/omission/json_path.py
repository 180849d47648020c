"""Change the value at one JSONPath of a result; all other bytes stay unchanged."""

import json
from collections.abc import Callable

from faults.document import (
    DocumentEdit,
    DocumentNode,
    TextDocument,
    apply_document_edits,
    make_value_edit,
    parse_document,
)


def find_value_node(document: TextDocument, path: str) -> DocumentNode:
    """Return the first value at a path; raises NoInjectionSite if there is none."""
    return next(node for node in document.nodes(path) if node.is_whole)


def transform_at_path(whole: str, path: str, mutate: Callable[[str], str]) -> str:
    """Apply `bend` to a text, or to the value at a path in it.

    A JSON string is passed without its quotes and written back with them, any other value as it is
    written. Raises NoInjectionSite if the path matches nothing.
    """
    if not path:
        return mutate(whole)
    document = parse_document(whole)
    node = find_value_node(document, path)
    if node.literal:
        return apply_document_edits(document, [make_value_edit(node, mutate(node.text))])
    return apply_document_edits(
        document, [DocumentEdit(node.start, node.stop, mutate(document.raw(node)))]
    )


def escape_for_node(written: str, node: DocumentNode) -> str:
    """Return JSON as it is written next to a node, which may be in JSON strings itself."""
    for _ in range(node.quote_depth):
        written = json.dumps(written)[1:-1]
    return written
