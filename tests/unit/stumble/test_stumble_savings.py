"""What a fork saved: a price that is not known makes the sum unknown, and never smaller."""

import pytest

from stumble.runs.savings import SavedCost, compute_savings, sum_savings
from traces.conversation.derived_steps import DerivedSteps
from traces.dialects.types import ModelAnswer, TokenUsage

USAGE = TokenUsage(prompt_tokens=1000, cached_tokens=0, completion_tokens=100, reasoning_tokens=0)
KNOWN = ModelAnswer(message="hi", model="gpt-4o", usage=USAGE)
STRANGE = ModelAnswer(message="hi", model="practice/naive", usage=USAGE)
UNCOUNTED = ModelAnswer(message="hi", model="gpt-4o")


def of(*answers: ModelAnswer) -> SavedCost:
    """What it saved that these were answered from the tape, and an exchange that said nothing."""
    told = DerivedSteps(steps=(), tool_uses=(), contexts={}, answers=dict(enumerate(answers)))
    return compute_savings(told, range(len(answers) + 1))


def test_what_is_known_is_added_up() -> None:
    """The prices of gpt-4o: $2.50 and $10 for a million tokens."""
    found = of(KNOWN, KNOWN)
    assert (found.calls, found.tokens) == (2, 2200)
    assert found.usd == pytest.approx(2 * (1000 * 2.5e-6 + 100 * 10e-6))
    assert found.to_line() == "2 model calls came from the tape: 2,200 tokens and $0.0070 not spent"


@pytest.mark.parametrize(
    ("answer", "tokens", "says"),
    [
        (STRANGE, 2200, "2,200 tokens not spent; cost unknown: no price for practice/naive"),
        (UNCOUNTED, None, "an unknown number of tokens not spent; cost unknown"),
    ],
)
def test_one_that_is_unknown_makes_the_sum_unknown(
    answer: ModelAnswer, tokens: int | None, says: str
) -> None:
    found = of(KNOWN, answer)
    assert (found.calls, found.tokens, found.usd) == (2, tokens, None)
    assert says in found.to_line()
    assert sum_savings([of(KNOWN), found, of(KNOWN)]) == of(KNOWN, KNOWN, answer, KNOWN)
    assert found.to_dict() == {"model_calls": 2, "tokens": tokens, "usd": None}


def test_nothing_saved_is_nothing_and_not_unknown() -> None:
    assert of() == SavedCost() == sum_savings([])
    assert SavedCost().to_line() == "0 model calls came from the tape"
