"""An agent's limits on calls, seconds, dollars and tokens, and the amounts spent."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class AgentBudget:
    """Four limits, each None if unlimited; seconds count from the object's creation."""

    calls: int | None = None
    seconds: float | None = None
    dollars: float | None = None
    tokens: int | None = None
    began: float = field(default_factory=time.monotonic)
    spent_calls: int = 0
    spent_dollars: float | None = 0.0
    """None once the price of any answer is unknown."""
    spent_tokens: int = 0

    def count_answer(self, tokens: int, dollars: float | None) -> None:
        """Add one model answer to the amounts spent."""
        self.spent_calls += 1
        self.spent_tokens += tokens
        before, self.spent_dollars = self.spent_dollars, None
        if before is not None and dollars is not None:
            self.spent_dollars = before + dollars

    @property
    def seconds_left(self) -> float | None:
        """Seconds left; None if time is unlimited."""
        if self.seconds is None:
            return None
        return self.began + self.seconds - time.monotonic()

    def find_reached_limit(self) -> str | None:
        """Return a description of the first reached limit, or None."""
        return next(self._find_reached_limits(), None)

    def _find_reached_limits(self) -> Iterator[str]:
        if self.calls is not None and self.spent_calls >= self.calls:
            yield f"{self.calls} model calls"
        if self.seconds_left is not None and self.seconds_left <= 0:
            yield f"{self.seconds:g} seconds"
        if self.tokens is not None and self.spent_tokens >= self.tokens:
            yield f"{self.tokens} tokens"
        if self.dollars is not None and self.spent_dollars is None:
            yield "a limit in dollars, where the price of this model is not known"
        elif self.dollars is not None and (self.spent_dollars or 0.0) >= self.dollars:
            yield f"{self.dollars:g} dollars"
