"""V7 wrong_entity: the values of another record."""

from collections import defaultdict
from random import Random
from typing import Annotated

from faults.document import DocumentNode, NodeKind, parse_document
from faults.operator import JsonPath, operator
from faults.operators.value.select_value import rewrite_values
from faults.operators.value.stale import find_record_id, list_records
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from faults.targeting.observations import NO_OBSERVATIONS, CleanObservations
from traces.model import Exchange


@operator("V7")
def wrong_entity(
    exchange: Exchange,
    rng: Random,
    *,
    keep_id: bool = True,
    path: Annotated[str, JsonPath()] = "",
    seen: CleanObservations = NO_OBSERVATIONS,
) -> Exchange:
    """Return another record's values.

    Incident: a collision of cache keys, a leak between tenants. The other record has the same
    fields and comes from the recording or from the same result; its id is replaced with the correct
    one (`keep_id`) or kept. Nothing is fabricated.
    """
    document = parse_document(decode_response_text(exchange))
    here = tuple(list_records(document))
    known = defaultdict[_RecordShape, list[_Record]](list)
    for other in (*here, *(record for each in seen.documents() for record in list_records(each))):
        known[_to_record_shape(other)].append(other)
    places = {node.start for node in document.nodes(path)}
    candidates = [
        record for record in here if any(node.start in places for node in record.values())
    ]
    for record in rng.sample(candidates, len(candidates)):
        record_id = find_record_id(record)
        others = [
            o
            for o in known[_to_record_shape(record)]
            if _is_other_entity(record_id, find_record_id(o))
        ]
        if others and (
            pairs := _pair_record_values(record, rng.choice(others), record_id if keep_id else None)
        ):
            return replace_response_text(exchange, rewrite_values(document, pairs))
    raise NoInjectionSite("no other record with the same fields was seen")


type _Record = dict[str, DocumentNode]
type _RecordShape = frozenset[tuple[str, NodeKind]]


def _to_record_shape(record: _Record) -> _RecordShape:
    return frozenset((name, node.kind) for name, node in record.items())


def _is_other_entity(own: DocumentNode | None, other: DocumentNode | None) -> bool:
    """Return whether two records describe different entities."""
    return own is not None and other is not None and own.text != other.text


def _pair_record_values(
    record: _Record, other: _Record, keep: DocumentNode | None
) -> list[tuple[DocumentNode, str]]:
    return [
        (node, other[name].text)
        for name, node in record.items()
        if other[name].text != node.text and node is not keep
    ]
