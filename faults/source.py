"""By what a wrong value is known, and whether a place says it."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from faults.after import After
from faults.atoms import atoms, leaves, number
from faults.change import VALUES, Change
from faults.entity import specific
from faults.levels import Pair, aggregated, aggregates, derived, numbers, numeric, roundings
from faults.sinks import Sink
from traces.model import Level

PAIRS = 32
"""How many bent numbers of one result are looked for under functions."""
NUMBERS = 12
"""How many numbers of a last answer, of those the twin's lacks, are held against its own."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is looked for."""

    change: Change
    known: frozenset[str]
    """The atoms of all that was said before."""
    heard: frozenset[str]
    """Those, and all that the clean twins say: none of it can be told from what is right."""

    @property
    def followed(self) -> bool:
        """Whether the lie is a value that may be taken over."""
        return self.change.injection.family in VALUES

    @cached_property
    def trackable(self) -> frozenset[str]:
        """The atoms by which the wrong value is known."""
        if not self.followed:
            return frozenset()
        return frozenset(filter(specific, self.change.introduced)) - self.heard

    @cached_property
    def lost(self) -> frozenset[str]:
        """The atoms by which the true value is known: nobody had said them before."""
        return frozenset(filter(specific, self.change.gone)) - self.known

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The numbers that were bent."""
        return numeric(self.change.swapped)[:PAIRS] if self.followed else ()

    @cached_property
    def rounded(self) -> frozenset[str]:
        """The atoms of shorter forms of them."""
        return roundings(self.pairs) - self.heard

    @cached_property
    def context(self) -> tuple[Decimal, ...]:
        """The numbers with which one may reckon, sorted."""
        said = self.known | atoms(self.change.original)
        return tuple(sorted({Decimal(atom[2:]) for atom in said if atom[0] == "n"}))

    @cached_property
    def columns(self) -> tuple[dict[str, tuple[Decimal, ...]], dict[str, tuple[Decimal, ...]]]:
        """Sums and the like of the lists in the true and in the bent result."""
        if not self.followed:
            return {}, {}
        return (
            aggregates(leaves(self.change.original)),
            aggregates(leaves(self.change.mutated)),
        )

    def said(
        self, sink: Sink, same: Sequence[Sink], echoed: frozenset[str]
    ) -> tuple[Level, str] | None:
        """How a sink says the wrong value, and as what; `same`: the twins' sinks in its place."""
        if not self.followed:
            return None
        if here := sorted(self.trackable & sink.atoms):
            exact = next((a for a in here if self._spelled(a, sink.text)), None)
            return ("exact", exact[2:]) if exact else ("format", here[0][2:])
        if here := sorted(self.rounded & sink.atoms):
            return "rounded", here[0][2:]
        if here := sorted(echoed & sink.atoms):
            return "derived", here[0][2:]
        if any(other.text == sink.text for other in same):
            return None
        value = next((v for other in same if (v := self._derived(sink, other)) is not None), None)
        return None if value is None else ("derived", str(value))

    def _spelled(self, atom: str, text: str) -> bool:
        said = self.change.spelled.get(atom)
        return said is None or said in text

    def _derived(self, sink: Sink, other: Sink) -> Decimal | None:
        """The first number that is of the wrong value what the twin's is of the true one."""
        if not self.pairs and self.columns[0] == self.columns[1]:
            return None
        for twin, used in _aligned(sink, other):
            known = number(str(used)) in self.heard
            if (not known and derived(self.pairs, twin, used, self.context)) or aggregated(
                *self.columns, twin, used
            ):
                return used
        return None


def _aligned(sink: Sink, other: Sink) -> list[tuple[Decimal, Decimal]]:
    """The numbers of a twin's slot with those that stand for them here.

    By their paths and then by their turn; in texts that do not have as many, each with each.
    """
    found: list[tuple[Decimal, Decimal]] = []
    theirs = {leaf.path: leaf.said for leaf in other.leaves}
    for leaf in sink.leaves:
        said = theirs.get(leaf.path)
        if said is None or said == leaf.said:
            continue
        mine, twins = numbers(leaf.said), numbers(said)
        if len(mine) == len(twins):
            found += [(a, b) for a, b in zip(twins, mine, strict=True) if a != b]
        else:
            lone = [n for n in mine if n not in twins][:NUMBERS]
            gone = [n for n in twins if n not in mine][:NUMBERS]
            found += [(a, b) for a in gone for b in lone]
    return found


def source(change: Change, after: After, twins: tuple[After, ...]) -> Source:
    """What is looked for after an injection."""
    heard = after.known.union(*(twin.all for twin in twins))
    return Source(change=change, known=after.known, heard=heard)
