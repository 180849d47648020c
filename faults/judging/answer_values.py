"""Whether an answer holds the values that the answers of all clean twins hold."""

from collections.abc import Sequence
from typing import Literal

from faults.after import After
from faults.atoms import atoms
from faults.judging.closing import last_said
from faults.levels import numbers, shorter
from traces.story import Story

type Values = Literal["same", "other", "absent"]


def compare_values(own: After, twins: Sequence[After]) -> Values | None:
    """The values of the last answer against those that all twins give and nobody said before.

    `absent`: neither they nor others in their place. None where the twins share none.
    """
    others = [_values(twin.story) for twin in twins]
    if not others:
        return None
    shared = frozenset.intersection(*others) - own.known
    mine = _values(own.story)
    if not shared:
        return None
    if all(atom in mine or _rounded(atom) & mine for atom in shared):
        return "same"
    foreign = mine - own.known - frozenset().union(*others)
    return "other" if foreign else "absent" if not shared & mine else "other"


def _values(story: Story) -> frozenset[str]:
    """Numbers, days and ids of the last answer."""
    said = (atoms(turn.message) for turn in last_said(story))
    return frozenset(atom for each in said for atom in each if atom[0] != "s")


def _rounded(atom: str) -> frozenset[str]:
    """The shorter forms of a number, to three significant digits at least."""
    values = numbers(atom[2:]) if atom[0] == "n" else ()
    return frozenset(form for value in values for form in shorter(value))


def same_words(own: After, twins: Sequence[After]) -> bool:
    """Whether the answer is, word for word, that of a twin."""
    return any(_words(own.story) == _words(twin.story) for twin in twins)


def _words(story: Story) -> list[str]:
    return [" ".join(turn.message.split()) for turn in last_said(story)]
