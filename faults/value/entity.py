"""V7: another record."""

from random import Random
from typing import Annotated

from faults.body import NoSite, text, with_text
from faults.document import Node, read
from faults.operator import JsonPath, operator
from faults.seen import NOTHING, Seen
from faults.value.picks import chosen, exchanged, is_id
from faults.value.stale import records
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
    places = {node.start for node in document.nodes(path)}
    known = [*here, *(record for other in seen.documents() for record in records(other))]
    sites = []
    for record in here:
        if not any(node.start in places for node in record.values()):
            continue
        for other in known:
            pairs = _pairs(record, other, keep_id)
            if pairs and _apart(record, other):
                sites.append(pairs)
    if not sites:
        raise NoSite("no other record with the same fields was seen")
    return with_text(exchange, exchanged(document, chosen(rng, sites, "other record")))


def _apart(record: dict[str, Node], other: dict[str, Node]) -> bool:
    """Whether they have the same fields of the same kinds, and are not about the same."""
    if {n: v.kind for n, v in record.items()} != {n: v.kind for n, v in other.items()}:
        return False
    mine = next((node for node in record.values() if is_id(node)), None)
    return mine is not None and other[mine.name].said != mine.said


def _pairs(
    record: dict[str, Node], other: dict[str, Node], keep_id: bool
) -> list[tuple[Node, str]]:
    own = next((node for node in record.values() if is_id(node)), None)
    return [
        (node, other[name].said)
        for name, node in record.items()
        if name in other and other[name].said != node.said and not (keep_id and node is own)
    ]
