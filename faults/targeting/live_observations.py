"""Clean observations of a live run, for faults that are injected without a recording.

A tap in front of the injector that changes nothing: it sees the true results, at the model boundary
too. Responses made by a fault are not observations. Results count once the model has received them,
so that parallel calls give the same observations in any order of their responses.
"""

from copy import replace

from faults.targeting.observations import NO_OBSERVATIONS, CallObservation, CleanObservations
from traces.conversation.tracker import ConversationTap, TrackedCall, canonicalize_arguments
from traces.dialects import mcp
from traces.model import Exchange, Response

MAX_RESULTS = 256
"""Number of results kept, each as large as a model may receive."""


class LiveObservations:
    """The clean observations of a running run, with the interface of a recording's."""

    def __init__(self, watch: ConversationTap, *, world: bool) -> None:
        self._watch, self._world = watch, world
        self._calls: dict[int, TrackedCall] = {}
        self._answers: dict[TrackedCall, Response] = {}
        self._lied: set[TrackedCall] = set()
        self._results: dict[TrackedCall, str] = {}

    def request(self, exchange: Exchange) -> Exchange:
        """Note the call of a request, or the results that it delivers for the first time."""
        context = self._watch.find_context(exchange)
        if context.call is not None:
            self._calls[exchange.seq] = context.call
        for call, result in context.returned:
            if call not in self._lied:
                self._results[call] = result.text
            while len(self._results) > MAX_RESULTS:
                oldest = next(iter(self._results))
                del self._results[oldest]
                self._answers.pop(oldest, None)
        return exchange

    def done(self, exchange: Exchange) -> None:
        """Keep a tool's response; a clean later attempt replaces one changed by a fault."""
        call = self._calls.pop(exchange.seq, None)
        if call is None:
            return
        if exchange.answered_by == "fault":
            self._lied.add(call)
        elif exchange.response is not None and (
            exchange.error is None or mcp.has_mcp_response(exchange)
        ):
            self._lied.discard(call)
            self._answers[call] = exchange.response

    def for_call(self, call: TrackedCall, writes: bool | None = None) -> CleanObservations:
        """Return the observations before this call, without the call."""
        return replace(
            NO_OBSERVATIONS,
            observations=tuple(
                CallObservation(
                    call_id=each.id,
                    tool=each.tool,
                    arguments=canonicalize_arguments(each.arguments),
                    ordinal=each.ordinal,
                    result=result,
                    response=self._answers.get(each),
                )
                for each, result in self._results.items()
                if each is not call
            ),
            tool=call.tool,
            arguments=canonicalize_arguments(call.arguments),
            writes=writes,
            world=self._world,
        )
