"""Check whether an answer contains the values that the answers of all clean twins contain."""

from collections.abc import Sequence
from typing import Literal

from faults.judging.claims.closing_turns import find_last_turns
from faults.judging.post_injection import RunContinuation
from faults.judging.taint.similarity import parse_text_numbers, shorten_number
from faults.judging.value_tokens import extract_tokens
from traces.conversation.derived_steps import DerivedSteps

type ValueComparison = Literal["same", "other", "absent"]


def compare_values(
    own: RunContinuation, twins: Sequence[RunContinuation]
) -> ValueComparison | None:
    """Compare the answer's values with those that all twins give and no earlier message has.

    `absent`: neither they nor others in their place. None if the twins share none.
    """
    others = [_find_answer_tokens(twin.story) for twin in twins]
    if not others:
        return None
    shared = frozenset.intersection(*others) - own.prior_tokens
    own_tokens = _find_answer_tokens(own.story)
    if not shared:
        return None
    if all(atom in own_tokens or _round_number_token(atom) & own_tokens for atom in shared):
        return "same"
    foreign = own_tokens - own.prior_tokens - frozenset().union(*others)
    return "other" if foreign else "absent" if not shared & own_tokens else "other"


def _find_answer_tokens(story: DerivedSteps) -> frozenset[str]:
    """Return the numbers, dates and ids of the last answer."""
    tokens = (extract_tokens(turn.message) for turn in find_last_turns(story))
    return frozenset(atom for each in tokens for atom in each if atom[0] != "s")


def _round_number_token(atom: str) -> frozenset[str]:
    """Return the rounded forms of a number, with at least three significant digits."""
    values = parse_text_numbers(atom[2:]) if atom[0] == "n" else ()
    return frozenset(form for value in values for form in shorten_number(value))


def has_same_words(own: RunContinuation, twins: Sequence[RunContinuation]) -> bool:
    """Return whether the answer equals that of a twin, except for whitespace."""
    return any(
        _normalize_answer_text(own.story) == _normalize_answer_text(twin.story) for twin in twins
    )


def _normalize_answer_text(story: DerivedSteps) -> list[str]:
    return [" ".join(turn.message.split()) for turn in find_last_turns(story)]
