"""What a run has shown so far, for faults that strike where no recording is there to ask.

A tap that stands before the nemesis and changes nothing: it sees the true results, at the model
boundary too. What a fault answered is no observation. Results count once the model was told of
them, so that parallel calls are seen alike in whatever order they were answered.
"""

from dataclasses import replace

from faults.seen import NOTHING, Observation, Seen
from traces.conversation import Call, Watch, canonical_arguments
from traces.dialects import mcp
from traces.model import Exchange, Response

LATEST = 256
"""How many results are kept, each of which may be as large as a model is told."""


class Sofar:
    """The clean observations of a run that goes on; asked like those of a recording."""

    def __init__(self, watch: Watch, *, world: bool) -> None:
        self._watch, self._world = watch, world
        self._calls: dict[int, Call] = {}
        self._answers: dict[Call, Response] = {}
        self._lied: set[Call] = set()
        self._results: dict[Call, str] = {}

    def request(self, exchange: Exchange) -> Exchange:
        """Note whose request it is, or which results it tells for the first time."""
        placed = self._watch.placed(exchange)
        if placed.call is not None:
            self._calls[exchange.seq] = placed.call
        for call, result in placed.returned:
            if call not in self._lied:
                self._results[call] = result.text
            while len(self._results) > LATEST:
                oldest = next(iter(self._results))
                del self._results[oldest]
                self._answers.pop(oldest, None)
        return exchange

    def done(self, exchange: Exchange) -> None:
        """Keep what a tool answered; a later attempt may make good for one that was struck."""
        call = self._calls.pop(exchange.seq, None)
        if call is None:
            return
        if exchange.answered_by == "fault":
            self._lied.add(call)
        elif exchange.response is not None and (exchange.error is None or mcp.replied(exchange)):
            self._lied.discard(call)
            self._answers[call] = exchange.response

    def of(self, call: Call, writes: bool | None = None) -> Seen:
        """What was seen before this call, which is none of it."""
        return replace(
            NOTHING,
            observations=tuple(
                Observation(
                    call_id=each.id,
                    tool=each.tool,
                    arguments=canonical_arguments(each.arguments),
                    ordinal=each.ordinal,
                    result=result,
                    response=self._answers.get(each),
                )
                for each, result in self._results.items()
                if each is not call
            ),
            tool=call.tool,
            arguments=canonical_arguments(call.arguments),
            writes=writes,
            world=self._world,
        )
