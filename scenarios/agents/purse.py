"""What an agent may spend, and what it has spent."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Purse:
    """Four limits, each None where there is none; seconds count from when it was made."""

    calls: int | None = None
    seconds: float | None = None
    dollars: float | None = None
    tokens: int | None = None
    began: float = field(default_factory=time.monotonic)
    spent_calls: int = 0
    spent_dollars: float | None = 0.0
    """None as soon as the price of an answer was not known."""
    spent_tokens: int = 0

    def pay(self, tokens: int, dollars: float | None) -> None:
        """Count one answer of the model."""
        self.spent_calls += 1
        self.spent_tokens += tokens
        before, self.spent_dollars = self.spent_dollars, None
        if before is not None and dollars is not None:
            self.spent_dollars = before + dollars

    @property
    def left(self) -> float | None:
        """Seconds that are left; None where time has no limit."""
        if self.seconds is None:
            return None
        return self.began + self.seconds - time.monotonic()

    def empty(self) -> str | None:
        """The first limit that is reached, in words; None where none is."""
        return next(self._reached(), None)

    def _reached(self) -> Iterator[str]:
        if self.calls is not None and self.spent_calls >= self.calls:
            yield f"{self.calls} model calls"
        if self.left is not None and self.left <= 0:
            yield f"{self.seconds:g} seconds"
        if self.tokens is not None and self.spent_tokens >= self.tokens:
            yield f"{self.tokens} tokens"
        if self.dollars is not None and self.spent_dollars is None:
            yield "a limit in dollars, where the price of this model is not known"
        elif self.dollars is not None and (self.spent_dollars or 0.0) >= self.dollars:
            yield f"{self.dollars:g} dollars"
