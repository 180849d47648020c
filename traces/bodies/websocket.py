"""WebSocket traffic as exchanges, like all other traffic, so that every tap receives it.

The upgrade is an exchange: its GET, the head of its response (101, or a refusal), and as chunks the
messages that the server sent before the agent's first message. Each message of the agent is an
exchange of its own, a turn: `method` TEXT or BINARY, the `url` of the upgrade, no headers, the
message as `body`, inflated if permessage-deflate was in use; the same `connection`, and in `stream`
the number of the message on that connection, from 1 (the upgrade has 0). Messages of the server
belong to the latest turn: one chunk for each message, empty ones too, in order. All of them have
transport `websocket`.

The response of a turn has status 101 and begins with the first message of the server; a turn
without an answer has a response without chunks. A turn is over when the agent sends its next
message, or with the connection. `ended` marks a regular end: the next message, a close, or an agent
that disconnected after a complete response. Any other end has an `error`: `reset` or `eof` if the
server disconnected without a close, `cancelled` if the agent did.

Three more facts use fields that are otherwise empty in a turn:

    header  opcode   BINARY if the first message of the server is binary; else it is text
    trailer switch   indexes, from 0, of the messages with another opcode than the one before
    trailer close    `1011 why`: the server closed with this code; 1005 is a close without one
    trailer closed   the agent closed, with another code than 1000

Pings, pongs and the split of messages into frames are transport, and not stored.
"""

from collections.abc import Sequence
from copy import replace
from itertools import pairwise

from traces.model import Chunk, Exchange, Headers, Request, Response, find_header

TEXT_METHOD, BINARY_METHOD = "TEXT", "BINARY"


def is_websocket_upgrade(request: Request) -> bool:
    """True for a request to upgrade to a WebSocket."""
    return (find_header(request.headers, "upgrade") or "").lower() == "websocket"


def decline_websocket_upgrade(exchange: Exchange) -> Exchange:
    """Answer an upgrade request with 426, so that the client falls back to HTTP.

    Codex falls back at once after a 426; after any other refusal it retries five times.
    """
    data = b"no WebSocket here: ask over HTTP\n"
    headers = (
        ("content-type", "text/plain"),
        ("content-length", str(len(data))),
        ("upgrade", "HTTP/1.1"),  # RFC 9110 15.5.22: a 426 must name a protocol
        ("connection", "upgrade"),
    )
    at = exchange.started
    answer = Response(
        status=426,
        headers=headers,
        chunks=(Chunk(at=at, data=data),),
        reason="Upgrade Required",
        at=at,
        ended=at,
    )
    return replace(exchange, response=answer, answered_by="simulated")


class WebSocketDeclineTap:
    """A tap that declines every upgrade."""

    def request(self, exchange: Exchange) -> Exchange:
        is_upgrade = is_websocket_upgrade(exchange.request) and exchange.response is None
        return decline_websocket_upgrade(exchange) if is_upgrade else exchange


def make_websocket_headers(binary: bool) -> Headers:
    """Return the headers of a response whose first message is binary, or text."""
    return (("opcode", BINARY_METHOD),) if binary else ()


def make_websocket_trailers(
    binary: Sequence[bool], close: tuple[int, str] | None = None, *, by_agent: bool = False
) -> Headers:
    """Return the trailers of a response: opcode switches of its messages, and its close."""
    places = [place for place, (a, b) in enumerate(pairwise(binary), 1) if a != b]
    trailers = (("switch", " ".join(map(str, places))),) if places else ()
    if close is None or (by_agent and close[0] == 1000):
        return trailers
    code, why = close
    # Headers are latin-1; a reason may be any text, so its UTF-8 bytes are stored.
    why = why.encode("utf-8", "surrogateescape").decode("latin-1")
    return (*trailers, ("closed" if by_agent else "close", f"{code} {why}".rstrip()))


def read_binary_flags(answer: Response) -> tuple[bool, ...]:
    """Return for each message of a response whether it is binary."""
    binary, out = find_header(answer.headers, "opcode") == BINARY_METHOD, list[bool]()
    switches = {int(place) for place in (find_header(answer.trailers, "switch") or "").split()}
    for place in range(len(answer.chunks)):
        binary ^= place in switches
        out.append(binary)
    return tuple(out)


def read_websocket_close(answer: Response) -> tuple[int, str] | None:
    """Return the code and reason with which the server closed; None if it did not."""
    close = find_header(answer.trailers, "close")
    if close is None:
        return None
    code, _, why = close.partition(" ")
    return int(code), why.encode("latin-1").decode("utf-8", "replace")
