"""What a client had sent to an MCP server before each chunk of an answer.

A recorded answer is played as fast as the client reads it. A server that asked its client something
went on only when it had the answer; and its messages on a session's own stream (GET) followed
requests on other connections. A replay keeps this order: a chunk waits for these messages, not for
a time.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable

from msgspec import Struct, field

from traces.dialects import mcp
from traces.model import Exchange, Request, Response

type _Session = tuple[str, str | None]
"""URL and id."""


class StreamCue(Struct, frozen=True):
    """What the client had sent in the session before a chunk."""

    replies: frozenset[str] = frozenset()
    """The ids of the server's requests that it had answered."""
    requests: int = 0
    """How many requests and answers it had sent; counted for the session's own stream and
    its end only."""


class ClientMessageLog(Struct):
    """What the clients of a run have sent to MCP servers so far."""

    requests: Counter[_Session] = field(default_factory=Counter)
    replies: defaultdict[_Session, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, request: Request) -> None:
        """Add a message."""
        message = mcp.read_client_message(request)
        if message is None or message.role == "aside":
            return
        session = _find_session(request)
        self.requests[session] += 1
        if message.reply_to is not None:
            self.replies[session].add(message.reply_to)

    def has_reached(self, cue: StreamCue, request: Request) -> bool:
        """Whether the session of this request has got as far as the cue."""
        session = _find_session(request)
        return cue.replies <= self.replies[session] and cue.requests <= self.requests[session]


class RecordedClient:
    """The messages of the recorded clients, with their times."""

    def __init__(self, recorded: Iterable[Exchange]) -> None:
        self._times: defaultdict[_Session, list[float]] = defaultdict(list)
        self._replies: defaultdict[_Session, list[tuple[float, str]]] = defaultdict(list)
        self.stdio_replies: list[Request] = []
        """Answers to requests of servers over stdio; they have no response."""
        self._last: dict[int, float] = {}
        """By connection over stdio, the time of the client's last request."""
        self._asked_apart: defaultdict[_Session, set[str]] = defaultdict(set)
        """The ids of the server's requests on the session's own stream."""
        for exchange in recorded:
            message, session = (
                mcp.read_client_message(exchange.request),
                _find_session(exchange.request),
            )
            if message is None:
                continue
            if message.role != "aside":
                self._times[session].append(exchange.started)
                self._last[exchange.connection] = exchange.started
            if message.reply_to is not None:
                self._replies[session].append((exchange.started, message.reply_to))
                if exchange.transport == "stdio":
                    self.stdio_replies.append(exchange.request)
            if exchange.request.method in ("GET", "START") and exchange.response is not None:
                self._asked_apart[session] |= _list_asked(exchange, exchange.response)
        for times in self._times.values():
            times.sort()

    def find_cues(self, found: Exchange) -> tuple[StreamCue, ...]:
        """Return the cue of each chunk of a recorded answer; empty if no chunk waits.

        An error over stdio ended the session, so its cue is all that the client sent in it.
        """
        answer, session = found.response, _find_session(found.request)
        if answer is None and found.error is not None and found.transport == "stdio":
            last = self._last.get(found.connection, found.started)
            return (StreamCue(requests=bisect_right(self._times[session], last)),)
        if answer is None or not answer.chunks or found.request.method == "START":
            return ()
        if mcp.is_listening_request(found.request):
            times = self._times[session]
            return tuple(StreamCue(requests=bisect_left(times, x.at)) for x in answer.chunks)
        replies = [(at, id) for at, id in self._replies[session] if at > found.started]
        if replies:
            asked = _list_asked(found, answer) | self._asked_apart[session]
            replies = [(at, id) for at, id in replies if id in asked]
        if not replies:
            return ()
        return tuple(
            StreamCue(frozenset(id for at, id in replies if at < chunk.at))
            for chunk in answer.chunks
        )


def _list_asked(exchange: Exchange, answer: Response) -> set[str]:
    """Return the ids of a server's requests in a stream, or in the messages of a process."""
    if exchange.transport != "stdio":
        return {*mcp.list_server_requests(answer.headers, answer.body)}
    return {id for x in answer.chunks for id in mcp.list_server_requests((), x.data)}


def _find_session(request: Request) -> _Session:
    return request.url, mcp.find_session(request)
