"""The pin: the tap that tells a model the recorded result where a local tool now says another.

A command that prints a time, a process id or the order of a directory says something else each
time, and what comes after it would leave the recording. Pinned is what the recording's own model
asked for: the shared prefix of a fork, the struck call's result included, so that its runs differ
by the lie alone. What a live model asked for is never pinned. A pinned result stays so in every
later request, with the same bytes. The agent and its files keep what they have.

It comes first in the list of taps: the conversation that the others know is the pinned one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from replay.match import BUILT_IN, alike
from replay.rules import Rules
from traces.dialects import lens
from traces.model import Edit, Exchange, Request, header
from traces.step import Result
from traces.story import ToolUse


class Pin:
    """Pins the results of one run to those of a recording."""

    def __init__(
        self,
        uses: Iterable[ToolUse],
        played: Sequence[Exchange],
        *,
        redact: Callable[[Request], Request] = lambda request: request,
        rules: Rules = BUILT_IN,
    ) -> None:
        """`played`: the recorded exchanges that answered a model request of this run so far."""
        self._uses = {use.call_id: use for use in pinnable(uses)}
        self._played, self._redact, self._rules = played, redact, rules
        self._known: dict[tuple[str, str], bool] = {}
        """Of a call id and a text, whether that says something else than was recorded."""

    @property
    def drifted(self) -> int:
        """How many calls got another result than was recorded."""
        return len({call_id for (call_id, _), drifted in self._known.items() if drifted})

    def request(self, exchange: Exchange) -> Exchange:
        """The exchange with an edit for each result that drifted."""
        request, dialect = exchange.request, lens(exchange.request)
        if dialect is None or header(request.headers, "content-encoding") not in (None, "identity"):
            return exchange
        played = {each.seq for each in self._played}
        edits, pinned = set[Edit](), []
        for result in dialect.results(request.body):
            use = self._uses.get(result.call_id)
            if use is None or use.result is None or use.asked_by not in played:
                continue
            put = dialect.put(request.body, result, use.result)
            if put and self._drifted(request, result, put):
                edits |= set(put)
                pinned.append(result.call_id)
        if not pinned:
            return exchange
        in_order = tuple(sorted(edits, key=lambda edit: edit.start))
        return replace(exchange, edits=in_order, pinned=tuple(dict.fromkeys(pinned)))

    def _drifted(self, request: Request, result: Result, put: tuple[Edit, ...]) -> bool:
        """Whether the recorded result says something else, by the rules of matching."""
        key = result.call_id, result.text
        if key not in self._known:
            pinned = replace(Exchange(seq=0, request=request), edits=put).forwarded
            same = alike(self._redact(request), self._rules) == alike(pinned, self._rules)
            self._known[key] = not same
        return self._known[key]


def pinnable(uses: Iterable[ToolUse]) -> tuple[ToolUse, ...]:
    """The local calls of a recording whose result is known by an id that no other call has.

    Clients that count their ids anew use one again: whose result it is cannot be told then.
    """
    uses = tuple(uses)
    times = Counter(use.call_id.partition("#")[0] for use in uses)
    return tuple(
        use
        for use in uses
        if use.place == "local" and use.result is not None and times[use.call_id] == 1
    )
