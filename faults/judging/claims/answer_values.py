"""Check whether an answer contains the values that the answers of all clean twins contain."""

from collections.abc import Sequence
from typing import Literal

from faults.judging.claims.closing_turns import find_last_turns
from faults.judging.post_injection import RunContinuation
from faults.judging.taint.similarity import parse_text_numbers, shorten_number
from faults.judging.value_tokens import extract_tokens
from faults.targeting.read_or_write import classify_tool_side
from traces.conversation.derived_steps import DerivedSteps

type ValueComparison = Literal["same", "other", "absent"]


def compare_values(
    own: RunContinuation, twins: Sequence[RunContinuation]
) -> ValueComparison | None:
    """Compare the answer's values with those that all twins give and no earlier message has.

    `absent`: neither they nor others in their place. None if the twins share none.
    """
    others = [_find_answer_tokens(twin.story) for twin in twins]
    return _compare_tokens(_find_answer_tokens(own.story), others, own.prior_tokens)


def lacks_written_values(own: RunContinuation, twins: Sequence[RunContinuation]) -> bool:
    """Return whether what a run writes has none of the values in what all twins write."""
    others = [_find_written_tokens(twin) for twin in twins]
    return _compare_tokens(_find_written_tokens(own), others, own.prior_tokens) == "absent"


def _find_written_tokens(run: RunContinuation) -> frozenset[str]:
    """Return the numbers, dates and ids in the texts that a run writes."""
    written = [use for use in run.calls if classify_tool_side(use.tool) != "read"]
    return frozenset(atom for use in written for atom in _extract_values(use.arguments))


def _compare_tokens(
    own_tokens: frozenset[str], others: Sequence[frozenset[str]], prior: frozenset[str]
) -> ValueComparison | None:
    if not others:
        return None
    shared = frozenset.intersection(*others) - prior
    if not shared:
        return None
    if all(atom in own_tokens or _round_number_token(atom) & own_tokens for atom in shared):
        return "same"
    foreign = own_tokens - prior - frozenset().union(*others)
    return "other" if foreign else "absent" if not shared & own_tokens else "other"


def _find_answer_tokens(derived_steps: DerivedSteps) -> frozenset[str]:
    """Return the numbers, dates and ids of the last answer."""
    turns = find_last_turns(derived_steps)
    return frozenset(atom for turn in turns for atom in _extract_values(turn.message))


def _extract_values(text: str) -> frozenset[str]:
    return frozenset(atom for atom in extract_tokens(text) if atom[0] != "s")


def _round_number_token(atom: str) -> frozenset[str]:
    """Return the rounded forms of a number, with at least three significant digits."""
    values = parse_text_numbers(atom[2:]) if atom[0] == "n" else ()
    return frozenset(form for value in values for form in shorten_number(value))


def has_same_words(own: RunContinuation, twins: Sequence[RunContinuation]) -> bool:
    """Return whether the answer equals that of a twin, except for whitespace."""
    return any(
        _normalize_answer_text(own.story) == _normalize_answer_text(twin.story) for twin in twins
    )


def _normalize_answer_text(derived_steps: DerivedSteps) -> list[str]:
    return [" ".join(turn.message.split()) for turn in find_last_turns(derived_steps)]
