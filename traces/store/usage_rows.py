"""Tokens and costs of the answers on a tape, without the table library that the index needs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypedDict

from traces.conversation.derived_steps import DerivedSteps
from traces.dialects.types import TokenUsage
from traces.tape.reader import Tape

type PriceFunction = Callable[[str, TokenUsage], float | None]
"""US dollars for this usage of this model; None if no price is known."""


def price_nothing(model: str, usage: TokenUsage) -> None:
    """Know no price."""


class UsageColumns(TypedDict):
    """A row of the relation `usage`."""

    trajectory_id: str
    seq: int
    model: str | None
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None


TOKEN_COLUMNS: tuple[
    Literal["prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens"], ...
] = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")


def iter_usage(
    tape: Tape, derived_steps: DerivedSteps, price: PriceFunction
) -> Iterator[UsageColumns]:
    """Yield a row for each answer whose tokens are known, in the order of the requests."""
    for seq, answer in sorted(derived_steps.answers.items()):
        usage = answer.usage
        if usage is None:
            continue
        yield {
            "trajectory_id": tape.trajectory.id,
            "seq": seq,
            "model": answer.model,
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "completion_tokens": usage.completion_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "cost_usd": price(answer.model, usage) if answer.model else None,
        }


def sum_costs(usage: Sequence[UsageColumns]) -> float | None:
    """Return US dollars of all answers; None if there are none, or a cost is unknown."""
    costs = [cost for row in usage if (cost := row["cost_usd"]) is not None]
    return sum(costs) if usage and len(costs) == len(usage) else None
