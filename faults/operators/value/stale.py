"""V4 stale: values from an earlier response."""

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Annotated, Literal

from faults.document import DocumentNode, TextDocument, parse_document
from faults.operator import JsonPath, operator
from faults.operators.value.select_value import is_id, rewrite_values
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from faults.targeting.observations import NO_OBSERVATIONS, CleanObservations
from traces.model import Exchange

_SCALARS = ("number", "text", "date", "bool", "id")


@operator("V4")
def stale(
    exchange: Exchange,
    rng: Random,
    *,
    path: Annotated[str, JsonPath()] = "",
    stamp: Literal["old", "fresh"] = "old",
    seen: CleanObservations = NO_OBSERVATIONS,
) -> Exchange:
    """Return the values of an earlier, clean response for the same entity, if they differed.

    Incident: a cache, a read replica that lags behind. The earlier response is that of the same
    call, else any with an entity of the same id. With `stamp=fresh` dates keep their current
    values, so that none reveals the fault. Nothing is fabricated: a value that never changed is not
    a site.
    """
    text = decode_response_text(exchange)
    document = parse_document(text)
    starts = {node.start for node in document.nodes(path)} if path else None
    pairs = [
        (node, earlier)
        for node, earlier in _find_earlier_values(document, seen)
        if (starts is None or node.start in starts) and (stamp == "old" or node.kind != "date")
    ]
    if not pairs:
        raise NoInjectionSite("nothing else was said of it before")
    return replace_response_text(exchange, rewrite_values(document, pairs))


def _find_earlier_values(
    document: TextDocument, seen: CleanObservations
) -> Iterator[tuple[DocumentNode, str]]:
    """Yield each value that differed in an earlier response, with its earlier text."""
    call = seen.tool, seen.arguments
    for observation in reversed(seen.before):
        if (observation.tool, observation.arguments) == call and observation.result:
            pairs = tuple(_compare_documents(document, parse_document(observation.result)))
            if pairs:
                yield from pairs
                return
    known = defaultdict[str, list[dict[str, DocumentNode]]](list)
    for earlier in seen.documents(before=True):
        for record in list_records(earlier):
            if (record_id := find_record_id(record)) is not None:
                known[record_id.text].append(record)
    for record in list_records(document):
        record_id = find_record_id(record)
        for other in known[record_id.text] if record_id is not None else ():
            if pairs := tuple(_compare_records(record, other)):
                yield from pairs
                break


def _compare_documents(
    document: TextDocument, other: TextDocument
) -> Iterator[tuple[DocumentNode, str]]:
    """Yield the values at the same path in both documents that differ."""
    there = {(node.path, node.kind): node for node in other.nodes() if _is_plain_scalar(node)}
    for node in document.nodes():
        before = there.get((node.path, node.kind)) if _is_plain_scalar(node) else None
        if before is not None and before.text != node.text:
            yield node, before.text


def _is_plain_scalar(node: DocumentNode) -> bool:
    return node.kind in _SCALARS and node.is_whole and bool(node.path) and not node.is_nested_json


def list_records(document: TextDocument) -> Iterator[dict[str, DocumentNode]]:
    """Yield the objects of a document, each as its scalar members by name."""
    for node in document.nodes():
        if node.kind == "object":
            members = {item.name: item for item in node.items if _is_plain_scalar(item)}
            if members:
                yield members


def find_record_id(record: dict[str, DocumentNode]) -> DocumentNode | None:
    """Return the id of an object: its first id, since others are references."""
    return next((node for node in record.values() if is_id(node)), None)


def _compare_records(
    record: dict[str, DocumentNode], other: dict[str, DocumentNode]
) -> Iterator[tuple[DocumentNode, str]]:
    for name, node in record.items():
        before = other.get(name)
        if before is not None and before.kind == node.kind and before.text != node.text:
            yield node, before.text
