"""Accept or redraw wrong values: rules i to vi, which an operator alone cannot keep.

    i    it is valid under the schema: no new name or type, and nothing that the `outputSchema` of
         an MCP server refuses
    ii   it is a different value: 1.50 is not different from 1.5
    iii  it is in a plausible range; each operator ensures this or documents that it does not
    iv   it occurs nowhere else, so that its use can be traced; values taken from the recording (a
         stale value, another entity's) cannot meet this and are exempt
    v    it is live: the clean run used the value that it replaces; else it is labelled dead
    vi   no text reveals it; a test checks this for all operators

A value that breaks a rule is drawn again. A dead value is drawn again too, and taken if all are.
"""

import json
from collections.abc import Callable, Mapping

from msgspec import Struct

from faults.document import TextDocument, parse_document
from faults.judging.value_tokens import extract_tokens
from faults.operator import Operator
from faults.response_body import NoInjectionSite, decode_response_text
from faults.seeded_random import make_rng
from faults.targeting.observations import CleanObservations
from traces.model import Exchange, Scalar

MAX_DRAWS = 16


class DrawnExchange(Struct, frozen=True):
    """A changed exchange, and whether the clean run used the replaced value."""

    exchange: Exchange
    dead: bool | None = None
    """None if unknown: nothing was recorded, or nothing of it can be traced."""


def draw_exchange(
    operator: Operator,
    exchange: Exchange,
    params: Mapping[str, Scalar],
    at: str,
    *,
    seen: CleanObservations,
    background: frozenset[str] = frozenset(),
    valid: Callable[[str], bool] = lambda text: True,
) -> DrawnExchange:
    """Apply an operator to an exchange; redraw a wrong value until it keeps the rules.

    The rules do not hold for a value that the user gave.

    `valid` returns whether the tool's declared output allows such a result.
    """

    def apply_draw(draw: int) -> Exchange:
        return operator(exchange, make_rng(at, draw), params, seen)

    if operator.family != "V":
        return DrawnExchange(apply_draw(0))
    original, dead_draw, refused = decode_response_text(exchange), None, ""
    if operator.by_hand:
        changed = apply_draw(0)
        mutated = decode_response_text(changed)
        return DrawnExchange(changed, is_dead_value(original, mutated, seen))
    for draw in range(MAX_DRAWS):
        changed = apply_draw(draw)
        mutated = decode_response_text(changed)
        if (
            find_broken_rule(original, mutated, fresh=operator.fresh, background=background)
            is not None
        ):
            continue
        if not valid(mutated):
            refused = ", and that its outputSchema allows"
            continue
        candidate = DrawnExchange(changed, is_dead_value(original, mutated, seen))
        if not candidate.dead:
            return candidate
        dead_draw = dead_draw or candidate
    if dead_draw is None:
        raise NoInjectionSite(
            f"no wrong value in {MAX_DRAWS} draws that occurs nowhere else{refused}"
        )
    return dead_draw


def find_broken_rule(
    original: str, mutated: str, *, fresh: bool, background: frozenset[str] = frozenset()
) -> str | None:
    """Return the first of the rules i, ii and iv that a wrong value breaks, or None."""
    if to_document_shape(parse_document(mutated)) - to_document_shape(parse_document(original)):
        return "i"
    if is_equivalent_text(original, mutated):
        return "ii"
    introduced = extract_tokens(mutated) - extract_tokens(original)
    if fresh and (not introduced or introduced & background):
        return "iv"
    return None


def is_dead_value(original: str, mutated: str, seen: CleanObservations) -> bool | None:
    """Return whether the clean run used nothing of the replaced value; None if unknown."""
    removed = extract_tokens(original) - extract_tokens(mutated)
    if not removed or seen.own_call is None:
        return None
    return not removed & extract_tokens(seen.later_text)


def to_document_shape(document: TextDocument) -> frozenset[tuple[tuple[str | None, ...], str]]:
    """Return the names and types in a document; all items of a list count as one."""
    nodes = document.root.walk() if document.root else ()
    return frozenset(
        (node.path_pattern, _to_json_type(node.kind, bool(node.literal)))
        for node in nodes
        if node.is_whole
    )


def _to_json_type(kind: str, literal: bool) -> str:
    return "string" if literal or kind in ("text", "date", "id") else kind


def is_equivalent_text(one: str, two: str) -> bool:
    """Return whether two texts are equal as JSON, else except for whitespace."""
    try:
        return bool(json.loads(one) == json.loads(two))
    except ValueError:
        return one.split() == two.split()
