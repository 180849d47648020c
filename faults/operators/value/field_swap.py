"""V5 field_swap: two exchanged fields."""

from itertools import combinations
from random import Random
from typing import Annotated

from faults.document import DocumentNode, parse_document
from faults.operator import JsonPath, operator
from faults.operators.value.select_value import choose_one, is_id, rewrite_values
from faults.operators.value.stale import list_records
from faults.response_body import decode_response_text, replace_response_text
from traces.model import Exchange


@operator("V5")
def field_swap(
    exchange: Exchange, rng: Random, *, path: Annotated[str, JsonPath()] = ""
) -> Exchange:
    """Exchange the values of two fields of the same type in one record.

    Incident: a shifted column mapping. Of strings only dates are exchanged, since others would be
    obvious. `path` is one of the two fields or the record. Nothing is fabricated.
    """
    document = parse_document(decode_response_text(exchange))
    places = {node.start for node in document.nodes(path)}
    sites = [
        (first, second)
        for record in list_records(document)
        for first, second in combinations(record.values(), 2)
        if _is_swappable_pair(first, second) and (first.start in places or second.start in places)
    ]
    first, second = choose_one(rng, sites, "pair of fields of one type")
    return replace_response_text(
        exchange, rewrite_values(document, [(first, second.text), (second, first.text)])
    )


def _is_swappable_pair(one: DocumentNode, two: DocumentNode) -> bool:
    if one.kind != two.kind or one.kind not in ("number", "date", "bool"):
        return False
    if is_id(one) or is_id(two) or one.text == two.text or bool(one.literal) != bool(two.literal):
        return False
    # To a schema an integer in place of a decimal would be another type.
    return one.kind != "number" or ("." in one.text) == ("." in two.text)
