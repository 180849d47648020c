"""How a careful agent could have told that something is wrong: D0 to D4, for each injection.

    D0  a channel of the protocol says so: a status, a JSON-RPC error, a flag
    D1  the words or the form say so: JSON that no longer parses, fields that were never there
    D2  it contradicts what was to be seen: a count, a sum, an order of dates, an id that was
        asked for, a stamp that went back, or an earlier answer about the same thing
    D3  asking again, or another tool, would tell
    D4  nothing within reach would tell: a control

Relations are those that held in the clean result, so none has to be declared. An effect that was
acknowledged and is not there is D3 however long it persists: no answer of the tool tells, and
what the world holds does. A delay and a sham have no D: there is nothing to detect.
"""

from collections.abc import Iterator
from typing import Literal

from faults.atoms import atoms
from faults.document import Document, read
from faults.invariants import held, iso
from faults.seen import Seen
from faults.validity import shape
from faults.value.stale import entity, records
from traces.dialects.failing import spoken
from traces.model import Injection

type Detect = Literal["D0", "D1", "D2", "D3", "D4"]

_STAMP = ("at", "time", "stamp", "updated", "modified", "of", "since")


def detectability(injection: Injection, seen: Seen | None = None) -> Detect | None:
    """The D of an injection; None for what has none, and where it takes a recording to tell."""
    if injection.sham or injection.op == "delay":
        return None
    if injection.error_channel in ("http", "jsonrpc", "flag"):
        return "D0"
    if injection.error_channel == "text":
        return "D1"
    if injection.family == "X":
        return "D3"
    if injection.place == "model":
        return _of_answer(injection)
    if injection.original is None or injection.mutated is None:
        return None
    original = read(injection.original.decode("utf-8", "replace"))
    mutated = read(injection.mutated.decode("utf-8", "replace"))
    if malformed(original, mutated):
        return "D1"
    if contradicts(original, mutated, injection.arguments or "", seen):
        return "D2"
    if seen is None:
        return None
    if injection.persist == "once" or _told_elsewhere(original, mutated, seen):
        return "D3"
    return "D4"


def _of_answer(injection: Injection) -> Detect:
    """A model's answer: that there is none is seen, or JSON that does not parse; else ask again."""
    was, now = spoken(injection.original or b""), spoken(injection.mutated or b"")
    if was is None or now is None or malformed(read(was), read(now)):
        return "D1"
    return "D3" if injection.persist == "once" else "D4"


def malformed(original: Document, mutated: Document) -> bool:
    """Whether JSON no longer parses, or has other names or types than it had."""
    if original.root is None:
        return False
    if mutated.root is None:
        return True
    was, now = shape(original), shape(mutated)
    # A list without items says nothing of what is in it.
    lost = {path for path, _ in was - now if None not in path}
    return bool(now - was or lost)


def contradicts(original: Document, mutated: Document, arguments: str, seen: Seen | None) -> bool:
    """Whether a relation that held does no longer, in the result or with what was seen before."""
    if not held(original) <= held(mutated):
        return True
    asked = {atom for atom in atoms(arguments) if atom[0] == "i"}
    if asked & atoms(original.text) - atoms(mutated.text):
        return True
    if any(_went_back(original, mutated)):
        return True
    return seen is not None and bool(_facts_lost(original, mutated, seen))


def _went_back(original: Document, mutated: Document) -> Iterator[bool]:
    """Stamps that say an earlier day than they did."""
    now = {node.path: iso(node) for node in mutated.nodes()}
    for node in original.nodes():
        stamp = node.name.lower().replace("-", "_").split("_")[-1] in _STAMP
        before, after = iso(node), now.get(node.path)
        if stamp and before is not None and after is not None:
            yield after < before


def _facts_lost(original: Document, mutated: Document, seen: Seen) -> frozenset[str]:
    """What was seen before, was said again in the clean result, and is said no longer."""
    known = frozenset(fact for each in seen.documents(before=True) for fact in _facts(each))
    lost = frozenset(_facts(original)) & known - frozenset(_facts(mutated))
    # What merely is not said any more contradicts nothing.
    said = {fact.rpartition("=")[0] for fact in _facts(mutated)}
    return frozenset(fact for fact in lost if fact.rpartition("=")[0] in said)


def _facts(document: Document) -> Iterator[str]:
    for record in records(document):
        if (own := entity(record)) is not None:
            for name, node in record.items():
                if node is not own:
                    yield f"{own.said}.{name}={node.said}"


def _told_elsewhere(original: Document, mutated: Document, seen: Seen) -> bool:
    """Whether another call of the recording was told what is true."""
    gone = atoms(original.text) - atoms(mutated.text)
    return any(gone & atoms(other.text) for other in seen.documents())
