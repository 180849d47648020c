"""Result pinning: a tap that shows a model the recorded result if a local tool's result drifted.

A command that prints a time, a process id or a directory order gives different output each time,
and the requests after it would diverge. Results are pinned if the recording's own model requested
the call: the shared prefix of a fork, including the faulted call's result, so that its runs differ
only by the fault. Calls of a live model are never pinned. A pinned result stays pinned in every
later request, with the same bytes. The agent and its files keep the actual result.

It is the first in the list of taps: the conversation seen by the others is the pinned one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import replace

from replay.matching.index import BUILT_IN_RULES, compute_canonical_key
from replay.matching.rules import MatchRules
from traces.conversation.derived_steps import ToolUse
from traces.dialects import find_dialect
from traces.dialects.types import ToolResult
from traces.model import BodyEdit, Exchange, Request, find_header


class ResultPinning:
    """Pins the results of one run to those of a recording."""

    def __init__(
        self,
        uses: Iterable[ToolUse],
        played: Sequence[Exchange],
        *,
        redact: Callable[[Request], Request] = lambda request: request,
        rules: MatchRules = BUILT_IN_RULES,
    ) -> None:
        """`played`: the recorded exchanges that answered a model request of this run so far."""
        self._uses = {use.call_id: use for use in find_pinnable_uses(uses)}
        self._played, self._redact, self._rules = played, redact, rules
        self._known: dict[tuple[str, str], bool] = {}
        """Per call id and result text: whether it differs from the recording."""

    @property
    def drift_count(self) -> int:
        """How many calls got a result that differs from the recorded one."""
        return len({call_id for (call_id, _), drifted in self._known.items() if drifted})

    def request(self, exchange: Exchange) -> Exchange:
        """Return the exchange with an edit for each result that drifted."""
        request, dialect = exchange.request, find_dialect(exchange.request)
        if dialect is None or find_header(request.headers, "content-encoding") not in (
            None,
            "identity",
        ):
            return exchange
        played = {each.seq for each in self._played}
        edits, pinned = set[BodyEdit](), []
        for result in dialect.make_dialect_reader()(request.body).results:
            use = self._uses.get(result.call_id)
            if use is None or use.result is None or use.asked_by not in played:
                continue
            replacement = dialect.replace_result(request.body, result, use.result)
            if replacement and self._is_drifted(request, result, replacement):
                edits |= set(replacement)
                pinned.append(result.call_id)
        if not pinned:
            return exchange
        ordered = tuple(sorted(edits, key=lambda edit: edit.start))
        return replace(exchange, edits=ordered, pinned=tuple(dict.fromkeys(pinned)))

    def _is_drifted(self, request: Request, result: ToolResult, put: tuple[BodyEdit, ...]) -> bool:
        """Return whether the recorded result differs, under the matching rules."""
        key = result.call_id, result.text
        if key not in self._known:
            pinned = replace(Exchange(seq=0, request=request), edits=put).forwarded
            is_same = compute_canonical_key(
                self._redact(request), self._rules
            ) == compute_canonical_key(pinned, self._rules)
            self._known[key] = not is_same
        return self._known[key]


def find_pinnable_uses(uses: Iterable[ToolUse]) -> tuple[ToolUse, ...]:
    """Return the local calls of a recording whose result is known and whose call id is unique.

    Clients that restart their call ids reuse them, so the owner of a result would be ambiguous.
    """
    uses = tuple(uses)
    times = Counter(use.call_id.partition("#")[0] for use in uses)
    return tuple(
        use
        for use in uses
        if use.place == "local" and use.result is not None and times[use.call_id] == 1
    )
