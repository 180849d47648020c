"""Keep the order of concurrent conversations: no answer comes earlier than it was recorded.

A replay answers at once, but the agent's own work takes as long as ever. So the answer to a helper
that ran beside would arrive turns too early, and the agent would hear of it in another request. A
chunk of a recorded answer therefore waits for the requests that had been made before it, and for
the answers that had ended before it. Sequential agents never wait.
"""

import time
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from traces.conversation.derived_steps import find_answer_end
from traces.model import Exchange

MAX_GAP, MAX_LAST_GAP = 0.1, 60.0
"""Seconds that a chunk at most comes after the event before it, which the agent has to take in; and
the last answer of a conversation, which the agent may hear of in the middle of other work.
"""
MAX_HELD_FACTOR, MAX_HELD_SECONDS = 3, 5.0
"""A chunk is held for so many times as long as it took in the recording, and so many seconds more;
an agent that has not done the same by then is in another order, and nothing waits any more.
"""


class OrderCue(Struct, frozen=True):
    """What had happened before a chunk, in the exchanges beside its own."""

    asked: frozenset[int] = frozenset()
    """Places of the requests that had been made."""
    answered: frozenset[int] = frozenset()
    """Places of those whose answers had ended."""
    gap: float = 0.0
    """Seconds that the chunk comes after the last of these events; 0 without any."""
    took: float = 0.0
    """Seconds from its own request to the chunk."""


class RecordedOrder(Struct):
    """The order of a recording, and how far a run has come in it."""

    exchanges: Sequence[Exchange]
    """By start time; a place is an index in it."""
    may_lack: Callable[[Exchange], bool]
    """Whether an agent may leave out an exchange, so that nothing waits for it."""
    is_last: Callable[[Exchange], bool]
    """Whether an answer ends its conversation."""
    clock: Callable[[], float] = time.monotonic
    _cues: dict[int, tuple[OrderCue, ...]] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)
    _asked: set[int] = field(default_factory=set)
    _answered: set[int] = field(default_factory=set)
    _last_event: float = 0.0
    _began: dict[int, float] = field(default_factory=dict)
    is_lost: bool = False
    """Whether this run has another order."""

    def begin(self, seq: int, place: int) -> None:
        """Note that a request of this run is the recorded one at a place."""
        if not self.is_lost and (cues := self._find_cues(place)):
            self._cues[seq] = cues
        self._places[seq], self._began[seq] = place, self.clock()
        self._asked.add(place)
        self._last_event = self._began[seq]

    def end(self, seq: int) -> None:
        """Note that the answer to a request has ended."""
        self._cues.pop(seq, None)
        if (place := self._places.pop(seq, None)) is not None:
            del self._began[seq]
            self._answered.add(place)
            self._last_event = self.clock()

    def is_due(self, seq: int, number: int) -> bool:
        """Return whether a chunk of the answer to a request may be sent."""
        cues = self._cues.get(seq, ())
        if self.is_lost or number >= len(cues):
            return True
        cue, now = cues[number], self.clock()
        if not (cue.asked <= self._asked and cue.answered <= self._answered):
            most = MAX_HELD_SECONDS + MAX_HELD_FACTOR * cue.took
            self.is_lost = now - self._began[seq] > most
            return self.is_lost
        return now - self._last_event >= cue.gap

    def _find_cues(self, place: int) -> tuple[OrderCue, ...]:
        """Return the cue of each chunk; () if nothing began before the last one."""
        own = self.exchanges[place]
        if own.response is None or not own.response.chunks or own.transport == "stdio":
            return ()
        last, beside = own.response.chunks[-1].at, [n for n in self._places.values() if n < place]
        for number in range(place + 1, len(self.exchanges)):
            if self.exchanges[number].started >= last:
                break
            beside.append(number)
        found = [(n, self.exchanges[n]) for n in beside if not self.may_lack(self.exchanges[n])]
        if not found:
            return ()
        most = MAX_LAST_GAP if self.is_last(own) else MAX_GAP
        return tuple(_make_cue(own, chunk.at, found, most) for chunk in own.response.chunks)


def _make_cue(
    exchange: Exchange, at: float, exchanges: Sequence[tuple[int, Exchange]], most: float
) -> OrderCue:
    asked = {n: each.started for n, each in exchanges if each.started < at}
    ends = {n: find_answer_end(each) for n, each in exchanges if n in asked}
    answered = {n: end for n, end in ends.items() if exchange.started < end < at}
    times = [time for time in (*asked.values(), *answered.values()) if time > exchange.started]
    return OrderCue(
        asked=frozenset(asked),
        answered=frozenset(answered),
        gap=min(most, at - max(times, default=at)),
        took=at - exchange.started,
    )
