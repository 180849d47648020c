"""When a wrong value will do: rules i to vi, which an operator alone cannot keep.

    i    it is still valid under the schema: no name or type that was not there, and nothing that
         the `outputSchema` of an MCP server refuses
    ii   it really is another value: 1.50 for 1.5 is none
    iii  it is in a plausible range; each operator sees to that, and says where it does not
    iv   it occurs nowhere else, so that its fate can be traced; what was taken from the
         recording (a stale value, another entity's) cannot be, and is not asked to
    v    it is live: the clean run went on with what it replaces; else it is labelled dead
    vi   no text gives it away; a test holds all operators to that

What breaks a rule is drawn again. A dead value is drawn again too, and taken where all are.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from faults.address import rng
from faults.atoms import atoms
from faults.body import NoSite, text
from faults.document import Document, read
from faults.operator import Operator
from faults.seen import Seen
from traces.model import Exchange, Scalar

REDRAWS = 16


@dataclass(frozen=True, slots=True)
class Drawn:
    """A bent exchange, and whether the clean run went on with what was there."""

    exchange: Exchange
    dead: bool | None = None
    """None where nobody knows: nothing was recorded, or nothing of it can be followed."""


def drawn(
    operator: Operator,
    exchange: Exchange,
    params: Mapping[str, Scalar],
    at: str,
    *,
    seen: Seen,
    background: frozenset[str] = frozenset(),
    valid: Callable[[str], bool] = lambda text: True,
) -> Drawn:
    """What an operator makes of an exchange; a wrong value is drawn until it keeps the rules.

    `valid` says whether the tool may give such a result, as far as it declares what it gives.
    """

    def bend(draw: int) -> Exchange:
        return operator(exchange, rng(at, draw), params, seen)

    if operator.family != "V":
        return Drawn(bend(0))
    whole, spare, refused = text(exchange), None, ""
    for draw in range(REDRAWS):
        bent = bend(draw)
        mutated = text(bent)
        if broken(whole, mutated, fresh=operator.fresh, background=background) is not None:
            continue
        if not valid(mutated):
            refused = ", and that its outputSchema allows"
            continue
        found = Drawn(bent, dead(whole, mutated, seen))
        if not found.dead:
            return found
        spare = spare or found
    if spare is None:
        raise NoSite(f"no wrong value in {REDRAWS} draws that occurs nowhere else{refused}")
    return spare


def broken(
    original: str, mutated: str, *, fresh: bool, background: frozenset[str] = frozenset()
) -> str | None:
    """The first of the rules i, ii and iv that a wrong value breaks; None where it keeps them."""
    if shape(read(mutated)) - shape(read(original)):
        return "i"
    if same(original, mutated):
        return "ii"
    introduced = atoms(mutated) - atoms(original)
    if fresh and (not introduced or introduced & background):
        return "iv"
    return None


def dead(original: str, mutated: str, seen: Seen) -> bool | None:
    """Whether the clean run went on with nothing of what was replaced; None if nobody knows."""
    gone = atoms(original) - atoms(mutated)
    if not gone or seen.own is None:
        return None
    return not gone & atoms(seen.later)


def shape(document: Document) -> frozenset[tuple[tuple[str | None, ...], str]]:
    """The names and types in a document, all items of a list taken together."""
    nodes = document.root.walk() if document.root else ()
    return frozenset(
        (node.general, _type(node.kind, bool(node.literal))) for node in nodes if node.whole
    )


def _type(kind: str, literal: bool) -> str:
    return "string" if literal or kind in ("text", "date", "id") else kind


def same(one: str, two: str) -> bool:
    """Whether two texts say the same: as JSON, else but for blanks."""
    try:
        return bool(json.loads(one) == json.loads(two))
    except ValueError:
        return one.split() == two.split()
