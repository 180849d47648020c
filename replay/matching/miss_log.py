"""Explain requests that the recording does not contain: each once, the first ones in detail.

A refused agent may ask again until its budget is used up, and a recording may be long; so the cost
of a refusal, and the memory used for it, are bounded.
"""

from collections.abc import Iterable

from replay.matching.diff import explain_miss
from replay.matching.index import RecordingIndex
from replay.matching.rules import MatchRules
from traces.model import Exchange, Request

MAX_EXPLAINED = 20
"""How many requests are compared with the recording; further ones are only named."""

MAX_COMPARED = 64
"""How many recorded requests are compared with one: those nearest to the agent's position."""


class MissLog:
    """Explanations of refused requests, by the first attempt at each."""

    def __init__(self, index: RecordingIndex, lost: Iterable[Exchange], rules: MatchRules) -> None:
        """`lost` are recorded exchanges with incomplete answers, which are not used as answers."""
        self._index, self._lost, self._rules = index, tuple(lost), rules
        self._said: dict[int, str] = {}
        self._asked: dict[bytes, int] = {}

    def was_refused(self, first: int, request: Request) -> bool:
        """Return whether this or an equivalent request was refused before.

        A client that gives each attempt a new id or time (Codex) makes an equivalent request.
        """
        return first in self._said or self._index.get_matching_key(request) in self._asked

    def get_explanation(self, first: int, request: Request, conflict: str | None = None) -> str:
        """Return the explanation of a redacted request, or the one of its first attempt.

        `conflict` is why a value of the client may not stand for the recorded one.
        """
        first = first if first in self._said else self._get_first_attempt(first, request)
        if first not in self._said:
            self._said[first] = self.make_explanation(request, conflict)
        return self._said[first]

    def _get_first_attempt(self, first: int, request: Request) -> int:
        return self._asked.setdefault(self._index.get_matching_key(request), first)

    def make_explanation(self, request: Request, conflict: str | None = None) -> str:
        """Explain a request."""
        if len(self._said) >= MAX_EXPLAINED:
            return f"nothing recorded for {request.method} {request.url}"
        named = self._index.values.to_recorded(request)
        used = self._index.find_used_equal(named, MAX_COMPARED)
        candidates = (*self._index.list_nearest_unused(MAX_COMPARED), *self._lost)
        if used is not None and conflict is None:
            candidates = (used,)
        return explain_miss(named, candidates, self._rules, self._index.comparison, conflict)
