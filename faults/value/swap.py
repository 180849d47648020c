"""V5: two fields change places."""

from itertools import combinations
from random import Random
from typing import Annotated

from faults.body import text, with_text
from faults.document import Node, read
from faults.operator import JsonPath, operator
from faults.value.picks import chosen, exchanged, is_id
from faults.value.stale import records
from traces.model import Exchange


@operator("V5")
def field_swap(
    exchange: Exchange, rng: Random, *, path: Annotated[str, JsonPath()] = ""
) -> Exchange:
    """Exchange the values of two fields of one record that are of the same type.

    Incident: a mapping of columns that slipped. Of texts only dates are exchanged, since others
    would give it away. `path` is one of the two or the record. Nothing is made up.
    """
    document = read(text(exchange))
    places = {node.start for node in document.nodes(path)}
    sites = [
        (one, two)
        for record in records(document)
        for one, two in combinations(record.values(), 2)
        if _alike(one, two) and (one.start in places or two.start in places)
    ]
    one, two = chosen(rng, sites, "pair of fields of one type")
    return with_text(exchange, exchanged(document, [(one, two.said), (two, one.said)]))


def _alike(one: Node, two: Node) -> bool:
    if one.kind != two.kind or one.kind not in ("number", "date", "bool"):
        return False
    if is_id(one) or is_id(two) or one.said == two.said or bool(one.literal) != bool(two.literal):
        return False
    # A whole number in place of a decimal would be another type to a schema.
    return one.kind != "number" or ("." in one.said) == ("." in two.said)
