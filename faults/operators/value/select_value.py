"""Select and rewrite the values that a value operator changes."""

import re
from collections.abc import Collection, Iterable
from random import Random

from faults.document import DocumentNode, TextDocument, apply_document_edits, make_value_edit
from faults.response_body import NoInjectionSite

_ID = re.compile(r"(?i:\A(?:id|uuid|guid|sku|key|version)\Z|_(?:id|uuid|key)\Z)|(?<=[a-z])I[dD]\Z")


def is_id(node: DocumentNode) -> bool:
    """Return whether a value identifies a thing rather than describes it."""
    return node.kind == "id" or bool(_ID.search(node.name))


def find_number_nodes(
    document: TextDocument, path: str, what: str = "number"
) -> tuple[DocumentNode, ...]:
    """Return the numbers at a path, or all except ids; raises NoInjectionSite if there are none."""
    numbers = [node for node in document.nodes(path) if node.kind == "number"]
    numbers = [node for node in numbers if not is_id(node)] or (numbers if path else [])
    if not numbers:
        location = f" at {path}" if path else ""
        raise NoInjectionSite(f"there is no {what}{location} in the result")
    return tuple(numbers)


def rewrite_value(document: TextDocument, node: DocumentNode, text: str) -> str:
    """Return the text with another value for one node."""
    return apply_document_edits(document, [make_value_edit(node, text)])


def rewrite_values(document: TextDocument, pairs: Iterable[tuple[DocumentNode, str]]) -> str:
    """Return the text with other values for several nodes."""
    return apply_document_edits(document, [make_value_edit(node, text) for node, text in pairs])


def choose_one[N](rng: Random, things: Collection[N], what: str) -> N:
    """Choose one at random; raises NoInjectionSite if there is none."""
    if not things:
        raise NoInjectionSite(f"there is no {what} in the result")
    return rng.choice(list(things))
