"""One value of a result, bent as if it were all of it; no other byte is touched."""

from collections.abc import Callable

from faults.document import Change, Document, Node, changed, instead, read


def at(document: Document, path: str) -> Node:
    """The first value at a path; NoSite where there is none."""
    return next(node for node in document.nodes(path) if node.whole)


def bent(whole: str, path: str, bend: Callable[[str], str]) -> str:
    """A text, or the value at a path in it, as `bend` has it; NoSite where there is none.

    A text in JSON is shown without its quotes and put back with them, any other value as it is
    written.
    """
    if not path:
        return bend(whole)
    document = read(whole)
    node = at(document, path)
    if node.literal:
        return changed(document, [instead(node, bend(node.said))])
    return changed(document, [Change(node.start, node.stop, bend(document.raw(node)))])
