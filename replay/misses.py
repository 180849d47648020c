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
        self._asked: dict[bytes, int] = {}

    def again(self, first: int, request: Request) -> bool:
        """Whether this, or what says the same, was refused before.

        A client that gives each try an id or a time of its own (Codex) asks for the same thing.
        """
        return first in self._said or self._index.meaning(request) in self._asked

    def why(self, first: int, request: Request) -> str:
        """What is said of a request, as a tape would hold it, or was said of the first attempt."""
        first = first if first in self._said else self._first(first, request)
        if first not in self._said:
            self._said[first] = self.explained(request)
        return self._said[first]

    def _first(self, first: int, request: Request) -> int:
        return self._asked.setdefault(self._index.meaning(request), first)

    def explained(self, request: Request) -> str:
        """What is said of it."""
        if len(self._said) >= EXPLAINED:
            return f"nothing recorded for {request.method} {request.url}"
        spent = self._index.spent(request, COMPARED)
        near = (*self._index.near(COMPARED), *self._lost)
        return explain(request, near if spent is None else (spent,), self._rules)
