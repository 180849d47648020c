"""When a stdio server sends its unsolicited messages, relative to the client's traffic.

A replay cannot use absolute times: a server's own request must follow the client's introduction,
and progress must precede the answer it belongs to, at any speed. With a speed, the recorded delay
after these events is kept too.
"""

from collections.abc import Iterable
from itertools import chain

from traces.model import Chunk, Exchange

type MessageTiming = tuple[int, int, float]
"""How many messages the client had sent, and how many answers it had received, when a chunk
arrived; and the seconds from the last of these to the chunk.
"""


def find_message_timings(
    start: Exchange, recorded: Iterable[Exchange], speed: float = 0
) -> tuple[MessageTiming, ...]:
    """Return the timing of each chunk of a START by the other exchanges of its session."""
    if start.response is None:
        return ()
    session = [
        x
        for x in recorded
        if (x.transport, x.connection) == ("stdio", start.connection) and x.seq != start.seq
    ]
    request_times = [x.started for x in session]
    answers = chain.from_iterable(x.response.chunks for x in session if x.response is not None)
    answer_times = [chunk.at for chunk in answers]

    def cue(chunk: Chunk) -> MessageTiming:
        sent, received = (
            [at for at in times if at <= chunk.at] for times in (request_times, answer_times)
        )
        delay = chunk.at - max((start.started, *sent, *received))
        return len(sent), len(received), delay / speed if speed else 0.0

    return tuple(cue(chunk) for chunk in start.response.chunks)
