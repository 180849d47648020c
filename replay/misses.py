"""Requests that the recording does not hold: each is told once, and the first ones at length.

An agent that is refused may ask again for as long as its budget lasts, and a recording may be
long; so what a refusal costs, and what is kept of it, has bounds.
"""

from collections.abc import Iterable

from replay.difference import explain
from replay.match import Index
from replay.rules import Rules
from traces.model import Exchange, Request

EXPLAINED = 20
"""Requests that are held against the recording; of more it is only said what they were."""

COMPARED = 64
"""Recorded requests that one is held against: those nearest to where the agent is."""


class Misses:
    """Why requests were refused, by the first attempt at each."""

    def __init__(self, index: Index, lost: Iterable[Exchange], rules: Rules) -> None:
        """`lost` are recorded exchanges whose answers are not whole, so that they are not given."""
        self._index, self._lost, self._rules = index, tuple(lost), rules
        self._said: dict[int, str] = {}

    def __contains__(self, first: int) -> bool:
        return first in self._said

    def why(self, first: int, request: Request) -> str:
        """What is said of a request, as a tape would hold it, or was said of the first attempt."""
        if first not in self._said:
            self._said[first] = self.explained(request)
        return self._said[first]

    def explained(self, request: Request) -> str:
        """What is said of it."""
        if len(self._said) >= EXPLAINED:
            return f"nothing recorded for {request.method} {request.url}"
        spent = self._index.spent(request, COMPARED)
        near = (*self._index.near(COMPARED), *self._lost)
        return explain(request, near if spent is None else (spent,), self._rules)
