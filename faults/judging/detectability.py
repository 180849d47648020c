"""Detectability of an injection by a careful agent: D0 to D4.

    D0  a protocol channel reports it: a status, a JSON-RPC error, a flag
    D1  words or form reveal it: JSON that no longer parses, fields that never existed
    D2  it contradicts visible data: a count, a sum, an order of dates, the requested id, a
        timestamp that went back, or an earlier response about the same thing
    D3  repeating the call, or another tool, would reveal it
    D4  nothing within reach would reveal it: a control

Relations are those that held in the clean result, so none has to be declared. An acknowledged
effect that is missing is D3 however long it persists: no response of the tool reveals it, but the
state of the world does. A delay and a sham have no D: there is nothing to detect.
"""

from collections.abc import Iterator
from typing import Literal

from faults.document import TextDocument, parse_document
from faults.injector.plausibility import to_document_shape
from faults.judging.invariants import find_invariants, parse_iso_day
from faults.judging.value_tokens import extract_tokens
from faults.operators.value.stale import find_record_id, list_records
from faults.targeting.observations import CleanObservations
from traces.dialects.errors import read_answer_text
from traces.model import Injection

type Detect = Literal["D0", "D1", "D2", "D3", "D4"]

_STAMP = ("at", "time", "stamp", "updated", "modified", "of", "since")


def rate_detectability(
    injection: Injection, seen: CleanObservations | None = None
) -> Detect | None:
    """Return the D of an injection; None if it has none, or if that requires a recording."""
    if injection.sham or injection.op == "delay":
        return None
    if injection.error_channel in ("http", "jsonrpc", "flag"):
        return "D0"
    if injection.error_channel == "text":
        return "D1"
    if injection.family == "X":
        return "D3"
    if injection.place == "model":
        return _rate_model_answer(injection)
    if injection.original is None or injection.mutated is None:
        return None
    original = parse_document(injection.original.decode("utf-8", "replace"))
    mutated = parse_document(injection.mutated.decode("utf-8", "replace"))
    if is_malformed_result(original, mutated):
        return "D1"
    if has_contradiction(original, mutated, injection.arguments or "", seen):
        return "D2"
    if seen is None:
        return None
    if injection.persist == "once" or _is_known_elsewhere(original, mutated, seen):
        return "D3"
    return "D4"


def _rate_model_answer(injection: Injection) -> Detect:
    """Rate a model's response: D1 if it is missing or malformed, else D3 or D4 by persistence."""
    was, now = (
        read_answer_text(injection.original or b""),
        read_answer_text(injection.mutated or b""),
    )
    if was is None or now is None or is_malformed_result(parse_document(was), parse_document(now)):
        return "D1"
    return "D3" if injection.persist == "once" else "D4"


def is_malformed_result(original: TextDocument, mutated: TextDocument) -> bool:
    """Return whether JSON no longer parses, or its names or types changed."""
    if original.root is None:
        return False
    if mutated.root is None:
        return True
    was, now = to_document_shape(original), to_document_shape(mutated)
    # An empty list gives no information on its items.
    lost = {path for path, _ in was - now if None not in path}
    return bool(now - was or lost)


def has_contradiction(
    original: TextDocument, mutated: TextDocument, arguments: str, seen: CleanObservations | None
) -> bool:
    """Return whether a relation no longer holds, in the result or with earlier observations."""
    if not find_invariants(original) <= find_invariants(mutated):
        return True
    requested_ids = {atom for atom in extract_tokens(arguments) if atom[0] == "i"}
    if requested_ids & extract_tokens(original.text) - extract_tokens(mutated.text):
        return True
    if any(_compare_stamps(original, mutated)):
        return True
    return seen is not None and bool(_find_lost_facts(original, mutated, seen))


def _compare_stamps(original: TextDocument, mutated: TextDocument) -> Iterator[bool]:
    """Yield whether each timestamp is an earlier day than before."""
    now = {node.path: parse_iso_day(node) for node in mutated.nodes()}
    for node in original.nodes():
        stamp = node.name.lower().replace("-", "_").split("_")[-1] in _STAMP
        before, after = parse_iso_day(node), now.get(node.path)
        if stamp and before is not None and after is not None:
            yield after < before


def _find_lost_facts(
    original: TextDocument, mutated: TextDocument, seen: CleanObservations
) -> frozenset[str]:
    """Return earlier facts that the clean result repeated and the changed one contradicts."""
    known = frozenset(
        fact for each in seen.documents(before=True) for fact in _list_record_facts(each)
    )
    lost = frozenset(_list_record_facts(original)) & known - frozenset(_list_record_facts(mutated))
    # A fact that is only missing contradicts nothing.
    stated = {fact.rpartition("=")[0] for fact in _list_record_facts(mutated)}
    return frozenset(fact for fact in lost if fact.rpartition("=")[0] in stated)


def _list_record_facts(document: TextDocument) -> Iterator[str]:
    for record in list_records(document):
        if (own := find_record_id(record)) is not None:
            for name, node in record.items():
                if node is not own:
                    yield f"{own.text}.{name}={node.text}"


def _is_known_elsewhere(
    original: TextDocument, mutated: TextDocument, seen: CleanObservations
) -> bool:
    """Return whether another recorded call returned the true value."""
    removed = extract_tokens(original.text) - extract_tokens(mutated.text)
    return any(removed & extract_tokens(other.text) for other in seen.documents())
