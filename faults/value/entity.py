"""V7: another record."""

from collections import defaultdict
from random import Random
from typing import Annotated

from faults.body import NoSite, text, with_text
from faults.document import Kind, Node, read
from faults.operator import JsonPath, operator
from faults.seen import NOTHING, Seen
from faults.value.picks import exchanged
from faults.value.stale import entity, records
from traces.model import Exchange


@operator("V7")
def wrong_entity(
    exchange: Exchange,
    rng: Random,
    *,
    keep_id: bool = True,
    path: Annotated[str, JsonPath()] = "",
    seen: Seen = NOTHING,
) -> Exchange:
    """Say of one thing what is true of another one of its kind.

    Incident: a collision of cache keys, a leak between tenants. The other record has the same
    fields, and was seen in the recording or stands in the same result; its id is that of the
    right one (`keep_id`) or its own. Nothing is made up.
    """
    document = read(text(exchange))
    here = tuple(records(document))
    known = defaultdict[_Shape, list[_Record]](list)
    for other in (*here, *(record for each in seen.documents() for record in records(each))):
        known[_shape(other)].append(other)
    places = {node.start for node in document.nodes(path)}
    there = [record for record in here if any(node.start in places for node in record.values())]
    for record in rng.sample(there, len(there)):
        own = entity(record)
        others = [o for o in known[_shape(record)] if _apart(own, entity(o))]
        if others and (pairs := _pairs(record, rng.choice(others), own if keep_id else None)):
            return with_text(exchange, exchanged(document, pairs))
    raise NoSite("no other record with the same fields was seen")


type _Record = dict[str, Node]
type _Shape = frozenset[tuple[str, Kind]]


def _shape(record: _Record) -> _Shape:
    return frozenset((name, node.kind) for name, node in record.items())


def _apart(own: Node | None, other: Node | None) -> bool:
    """Whether two records are about two things."""
    return own is not None and other is not None and own.said != other.said


def _pairs(record: _Record, other: _Record, keep: Node | None) -> list[tuple[Node, str]]:
    return [
        (node, other[name].said)
        for name, node in record.items()
        if other[name].said != node.said and node is not keep
    ]
