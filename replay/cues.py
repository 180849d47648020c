"""When a stdio server said something that nobody had asked for, told by what was said before.

A replay has no use for the time of day: a server's own request must come after the client has
introduced itself, and progress before the answer it belongs to, at whatever speed. At a pace it
also comes as long after these as it did.
"""

from collections.abc import Iterable
from itertools import chain

from traces.model import Chunk, Exchange

type Cue = tuple[int, int, float]
"""How many messages the client had sent, and how many answers it had, when a chunk came; and how
many seconds after the last of these it came."""


def cues(start: Exchange, recorded: Iterable[Exchange], speed: float = 0) -> tuple[Cue, ...]:
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

    def cue(chunk: Chunk) -> Cue:
        sent, had = ([at for at in times if at <= chunk.at] for times in (asked, answered))
        ago = chunk.at - max((start.started, *sent, *had))
        return len(sent), len(had), ago / speed if speed else 0.0

    return tuple(cue(chunk) for chunk in start.response.chunks)
