"""Cost saved by a fork: the model calls that its tape answered."""

from collections.abc import Iterable

from msgspec import Struct

from stumble.llm.prices import compute_token_cost
from traces.conversation.derived_steps import DerivedSteps


class SavedCost(Struct, frozen=True, kw_only=True):
    """Model calls answered from a tape, their tokens and US dollars; None is unknown, never 0."""

    calls: int = 0
    tokens: int | None = 0
    """Of prompts and completions, cached and reasoning tokens among them."""
    usd: float | None = 0.0
    unpriced: tuple[str, ...] = ()
    """The models of calls whose price is not known."""

    def __add__(self, other: "SavedCost") -> "SavedCost":
        return SavedCost(
            calls=self.calls + other.calls,
            tokens=_add_known(self.tokens, other.tokens),
            usd=_add_known(self.usd, other.usd),
            unpriced=tuple(dict.fromkeys((*self.unpriced, *other.unpriced))),
        )

    def to_line(self, runs: int = 1) -> str:
        """`12 model calls came from the tape in 4 runs: 3,412 tokens and $0.0123 not spent`."""
        said = f"{self.calls} model call{'' if self.calls == 1 else 's'} came from the tape"
        said += f" in {runs} runs" if runs > 1 else ""
        if not self.calls:
            return said
        tokens = "an unknown number of tokens" if self.tokens is None else f"{self.tokens:,} tokens"
        if self.usd is not None:
            return f"{said}: {tokens} and ${self.usd:.4f} not spent"
        why = f": no price for {', '.join(self.unpriced)}" if self.unpriced else ""
        return f"{said}: {tokens} not spent; cost unknown{why}"

    def to_dict(self) -> dict[str, object]:
        """The same as plain data."""
        return {"model_calls": self.calls, "tokens": self.tokens, "usd": self.usd}


def _add_known[N: (int, float)](one: N | None, two: N | None) -> N | None:
    return None if one is None or two is None else one + two


def compute_savings(derived_steps: DerivedSteps, seqs: Iterable[int]) -> SavedCost:
    """Return the cost of these exchanges of a recording if they were answered again.

    What was no answer (a failure, a warm-up) is nothing that is paid for.
    """
    total = SavedCost()
    for seq in seqs:
        answer = derived_steps.answers.get(seq)
        if answer is None:
            continue
        usage, model = answer.usage, answer.model
        usd = compute_token_cost(model, usage) if usage is not None and model is not None else None
        counts = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
        total += SavedCost(
            calls=1,
            tokens=_add_known(*counts),
            usd=usd,
            unpriced=(model,) if model is not None and usage is not None and usd is None else (),
        )
    return total


def sum_savings(parts: Iterable[SavedCost]) -> SavedCost:
    """All of them together."""
    return sum(parts, start=SavedCost())
