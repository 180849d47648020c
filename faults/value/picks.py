"""Which value to strike."""

import re
from collections.abc import Collection, Iterable
from random import Random

from faults.body import NoSite
from faults.document import Document, Node, changed, instead

_ID = re.compile(r"(?i:\A(?:id|uuid|guid|sku|key|version)\Z|_(?:id|uuid|key)\Z)|(?<=[a-z])I[dD]\Z")


def is_id(node: Node) -> bool:
    """True for what names a thing rather than says something of it: a wrong one is looked up."""
    return node.kind == "id" or bool(_ID.search(node.name))


def numbers(document: Document, path: str, what: str = "number") -> tuple[Node, ...]:
    """The numbers at a path, or anywhere but in ids; NoSite where there are none."""
    found = [node for node in document.nodes(path) if node.kind == "number"]
    found = [node for node in found if not is_id(node)] or (found if path else [])
    if not found:
        at = f" at {path}" if path else ""
        raise NoSite(f"there is no {what}{at} in the result")
    return tuple(found)


def rewritten(document: Document, node: Node, said: str) -> str:
    """The text with another value for one node."""
    return changed(document, [instead(node, said)])


def exchanged(document: Document, pairs: Iterable[tuple[Node, str]]) -> str:
    """The text with other values for several nodes."""
    return changed(document, [instead(node, said) for node, said in pairs])


def chosen[N](rng: Random, things: Collection[N], what: str) -> N:
    """One of them by chance; NoSite where there is none."""
    if not things:
        raise NoSite(f"there is no {what} in the result")
    return rng.choice(list(things))
