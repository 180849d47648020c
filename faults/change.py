"""What an injection put in the place of what: the atoms, fields and words by which it is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from faults.atoms import Leaf, atoms, leaves, pairs
from faults.entity import specific
from traces.model import Injection

VALUES = ("S", "V", "X")
"""Families whose lie is a value that an agent may take over; of an error it takes nothing."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A struck result as it was and as it was bent."""

    injection: Injection
    original: str
    mutated: str

    @cached_property
    def introduced(self) -> frozenset[str]:
        """Atoms that only the bent result has."""
        return atoms(self.mutated) - atoms(self.original)

    @cached_property
    def gone(self) -> frozenset[str]:
        """Atoms that only the true result has."""
        return atoms(self.original) - atoms(self.mutated)

    @cached_property
    def swapped(self) -> tuple[tuple[Leaf, Leaf], ...]:
        """Each value that stands where it stood and is another, as (was, now)."""
        before = {leaf.path: leaf for leaf in leaves(self.original)}
        after = {leaf.path: leaf for leaf in leaves(self.mutated)}
        both = [(before[path], after[path]) for path in before if path in after]
        return tuple((was, now) for was, now in both if was.said != now.said)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the values that differ or are no longer where they were; of a sham, all.

        A sham has to set off the same detector as a fault would at its place, and a fault may
        change any of them.
        """
        if self.injection.sham:
            return tuple(dict.fromkeys(leaf.name for leaf in leaves(self.original)))
        after = {leaf.path for leaf in leaves(self.mutated)}
        moved = [leaf.name for leaf in leaves(self.original) if leaf.path not in after]
        return tuple(dict.fromkeys((*(was.name for was, _ in self.swapped), *moved)))

    @cached_property
    def anchors(self) -> tuple[str, ...]:
        """The words that tie a statement to it: the tool and the fields that differ."""
        return tuple(word for word in (self.injection.tool, *self.fields) if word)

    @cached_property
    def moved(self) -> frozenset[str]:
        """Atoms that both results have, of values that no longer stand where they stood."""
        after = {(leaf.path, leaf.said, leaf.kind) for leaf in leaves(self.mutated)}
        gone = (x for x in leaves(self.original) if (x.path, x.said, x.kind) not in after)
        found = frozenset(atom for leaf in gone for atom in atoms(leaf.said))
        return found & atoms(self.mutated)

    @cached_property
    def replaced(self) -> frozenset[str]:
        """The atoms that another source may say again: those that are gone; of a sham, all."""
        return atoms(self.original) if self.injection.sham else self.gone

    @cached_property
    def values(self) -> frozenset[str]:
        """The atoms that tie a statement to it: what was put there, and what was there."""
        if self.injection.sham:
            return frozenset(filter(specific, self.replaced))
        return frozenset(filter(specific, self.introduced | self.gone))

    @cached_property
    def quotes(self) -> tuple[str, ...]:
        """The texts of the values themselves: a word of trouble in one of them is no remark."""
        said = {leaf.said for pair in self.swapped for leaf in pair if leaf.kind == "text"}
        return tuple(sorted((text for text in said if len(text) >= 3), key=len, reverse=True))

    @cached_property
    def spelled(self) -> Mapping[str, str]:
        """How the bent result says each of the atoms that it introduced."""
        said: dict[str, str] = {}
        for _, now in self.swapped:
            for atom in atoms(now.said):
                said[atom] = now.said
        return said

    @cached_property
    def pairs_gone(self) -> frozenset[str]:
        """What the true result says of its fields and the bent one does not."""
        return pairs(self.original) - pairs(self.mutated)

    def words(self) -> str | None:
        """What was done, in a few words; None where it says nothing simple."""
        if not self.original or not self.mutated or self.original == self.mutated:
            return None
        if self.swapped and _paths(self.original) == _paths(self.mutated):
            swaps = (f"{was.path}: {was.said} -> {now.said}" for was, now in self.swapped[:3])
            more = len(self.swapped) - 3
            return ", ".join(swaps) + (f" and {more} more" if more > 0 else "")
        if self.original.startswith(self.mutated):
            before, after = len(self.original.encode()), len(self.mutated.encode())
            return f"cut to {after} of {before} bytes"
        return None


def _paths(text: str) -> frozenset[str]:
    return frozenset(leaf.path for leaf in leaves(text))


def change(injection: Injection) -> Change:
    """The change that an injection made; where nothing is known of it, one of nothing."""
    return Change(
        injection=injection,
        original=(injection.original or b"").decode("utf-8", "replace"),
        mutated=(injection.mutated or b"").decode("utf-8", "replace"),
    )
