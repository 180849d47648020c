"""Which mutants a run plants: all, those of a shard, or those of the gate."""

from collections.abc import Collection
from dataclasses import dataclass
from zlib import crc32

from tests.mutation.mutant import Mutant

FIXED = 40
"""Mutants that each gate plants."""
MOST_CHANGED = 60
"""Mutants of changed files that a gate plants beside them, or a rename would plant them all."""


@dataclass(frozen=True, slots=True)
class GateSelection:
    """The mutants to plant, and how many of changed files are left to `make mutants`."""

    mutants: tuple[Mutant, ...]
    left_out: int


def select_for_gate(mutants: tuple[Mutant, ...], changed: Collection[str]) -> GateSelection:
    """Choose FIXED mutants, and up to MOST_CHANGED of those whose file or test file changed.

    The order is that of a hash of their names, so that a new mutant replaces at most one other.
    """
    ordered = sorted(mutants, key=lambda each: crc32(each.name.encode()))
    fixed, others = ordered[:FIXED], ordered[FIXED:]
    touched = [each for each in others if any(file in changed for file in _list_files(each))]
    return GateSelection((*fixed, *touched[:MOST_CHANGED]), len(touched[MOST_CHANGED:]))


def _list_files(mutant: Mutant) -> tuple[str, ...]:
    return (mutant.file, *(test.partition("::")[0] for test in mutant.tests))
