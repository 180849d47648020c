"""S2: nothing is there."""

from random import Random
from typing import Annotated, Literal

from faults.body import NoSite, text, with_text
from faults.document import Change, Document, Node, changed, instead, read, retyped, without
from faults.invariants import counts
from faults.omission.piece import at
from faults.operator import BENT, JsonPath, Shows, operator
from faults.spoken import is_spoken, silenced
from traces.model import Exchange

_SHOWS = {**BENT, "model": Shows("none", "an answer without text and without calls")}


@operator("S2", shows=_SHOWS)
def empty(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal["same", "null", "text", "list", "object", "nothing"] = "same",
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Put nothing in place of the result, or of the value at `path`.

    Incident: an index that lags behind, a swallowed error, the wrong tenant. `same` keeps the
    shape: all lists are emptied, and the count beside them is 0; without lists an object or text
    is empty. The others are `null`, `""`, `[]`, `{}`, and no byte at all. Only these, and the
    count of 0, are made up. A model's answer has neither text nor calls, whatever `how` says.
    """
    if is_spoken(exchange):
        return silenced(exchange)
    whole = text(exchange)
    if not whole.strip():
        raise NoSite("the result is empty already")
    if how == "nothing" and not path:
        return with_text(exchange, "")
    document = read(whole)
    bent = _same(document, path) if how == "same" else _put(document, path, _FORMS[how])
    if bent == whole:
        raise NoSite("the result is empty already")
    return with_text(exchange, bent)


_FORMS = {"null": "null", "text": '""', "list": "[]", "object": "{}", "nothing": ""}


def _put(document: Document, path: str, form: str) -> str:
    """One form in place of the whole, or of what stands at a path."""
    if not path:
        return form
    node = at(document, path)
    blank = node.cell or form == ""
    return changed(document, [instead(node, "") if blank else retyped(node, form)])


def _same(document: Document, path: str) -> str:
    """Nothing, in the shape of what is there."""
    if path:
        return changed(document, _nothing(at(document, path)))
    outer = [node for node in document.nodes() if node.kind == "array" and node.items]
    outer = [node for node in outer if not any(_in(node, other) for other in outer)]
    if outer:
        zeros = [instead(count, "0") for count, array in counts(document) if array in outer]
        return changed(document, [change for node in outer for change in _nothing(node)] + zeros)
    return changed(document, _nothing(document.root)) if document.root else ""


def _nothing(node: Node) -> list[Change]:
    if node.kind in ("object", "array"):
        return list(without(node, range(len(node.items))))
    if node.literal or node.cell:
        return [instead(node, "")]
    return [retyped(node, "null")]


def _in(node: Node, other: Node) -> bool:
    return other.start < node.start and node.stop < other.stop
