"""V4: what was true before."""

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Annotated, Literal

from faults.body import NoSite, text, with_text
from faults.document import Document, Node, read
from faults.operator import JsonPath, operator
from faults.seen import NOTHING, Seen
from faults.value.picks import exchanged, is_id
from traces.model import Exchange

_SCALARS = ("number", "text", "date", "bool", "id")


@operator("V4")
def stale(
    exchange: Exchange,
    rng: Random,
    *,
    path: Annotated[str, JsonPath()] = "",
    stamp: Literal["old", "fresh"] = "old",
    seen: Seen = NOTHING,
) -> Exchange:
    """Say what an earlier, clean answer said of the same thing, where that was something else.

    Incident: a cache, a read replica that lags behind. The earlier answer is that of the same
    call, else any that told of an entity with the same id. With `stamp=fresh` dates stay those of
    now, so that none gives it away. Nothing is made up: what never changed has no site.
    """
    whole = text(exchange)
    document = read(whole)
    wanted = {node.start for node in document.nodes(path)} if path else None
    pairs = [
        (node, said)
        for node, said in _before(document, seen)
        if (wanted is None or node.start in wanted) and (stamp == "old" or node.kind != "date")
    ]
    if not pairs:
        raise NoSite("nothing else was said of it before")
    return with_text(exchange, exchanged(document, pairs))


def _before(document: Document, seen: Seen) -> Iterator[tuple[Node, str]]:
    """Each value of which something else was said before, and that."""
    call = seen.tool, seen.arguments
    for each in reversed(seen.before):
        if (each.tool, each.arguments) == call and each.result:
            pairs = tuple(_differing(document, read(each.result)))
            if pairs:
                yield from pairs
                return
    known = defaultdict[str, list[dict[str, Node]]](list)
    for earlier in seen.documents(before=True):
        for record in records(earlier):
            if (own := entity(record)) is not None:
                known[own.said].append(record)
    for record in records(document):
        own = entity(record)
        for other in known[own.said] if own is not None else ():
            if pairs := tuple(_changed(record, other)):
                yield from pairs
                break


def _differing(document: Document, other: Document) -> Iterator[tuple[Node, str]]:
    """Values that stand at the same place in both and are not the same."""
    there = {(node.path, node.kind): node for node in other.nodes() if _plain(node)}
    for node in document.nodes():
        before = there.get((node.path, node.kind)) if _plain(node) else None
        if before is not None and before.said != node.said:
            yield node, before.said


def _plain(node: Node) -> bool:
    return node.kind in _SCALARS and node.whole and bool(node.path) and not node.opened


def records(document: Document) -> Iterator[dict[str, Node]]:
    """The objects of a document, each as its scalar members by name."""
    for node in document.nodes():
        if node.kind == "object":
            found = {item.name: item for item in node.items if _plain(item)}
            if found:
                yield found


def entity(record: dict[str, Node]) -> Node | None:
    """The id an object is known by: its first one, for others are references."""
    return next((node for node in record.values() if is_id(node)), None)


def _changed(record: dict[str, Node], other: dict[str, Node]) -> Iterator[tuple[Node, str]]:
    for name, node in record.items():
        before = other.get(name)
        if before is not None and before.kind == node.kind and before.said != node.said:
            yield node, before.said
