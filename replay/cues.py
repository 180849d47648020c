"""When a stdio server said something that nobody had asked for, told by what was said before.

A replay has no use for the time of day: a server's own request must come after the client has
introduced itself, and progress before the answer it belongs to, at whatever speed.
"""

from collections.abc import Iterable
from itertools import chain

from traces.model import Exchange

type Cue = tuple[int, int]
"""How many messages the client had sent, and how many answers it had, when a chunk came."""


def cues(start: Exchange, recorded: Iterable[Exchange]) -> tuple[Cue, ...]:
    """A cue for each chunk of a START, by the other exchanges of its session."""
    if start.response is None:
        return ()
    session = [
        x
        for x in recorded
        if (x.transport, x.connection) == ("stdio", start.connection) and x.seq != start.seq
    ]
    asked = [x.started for x in session]
    answers = chain.from_iterable(x.response.chunks for x in session if x.response is not None)
    answered = [chunk.at for chunk in answers]
    return tuple(
        (sum(at <= chunk.at for at in asked), sum(at <= chunk.at for at in answered))
        for chunk in start.response.chunks
    )
