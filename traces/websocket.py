"""The shape of WebSocket traffic: exchanges, like all other traffic, so that every tap sees it.

The upgrade is an exchange: its GET, the head of its answer (101, or a refusal), and as chunks
the messages that the server sent before the agent said anything. Each message of the agent is
an exchange of its own, a turn: `method` TEXT or BINARY, the `url` of the upgrade, no headers,
the message as `body`, inflated where permessage-deflate was in use; the same `connection`, and
in `stream` the number of the message on that connection, from 1 (the upgrade has 0). What the
server sends belongs to the latest turn: one chunk for each message, empty ones too, in order.
All of them have transport `websocket`.

The answer of a turn has status 101 and begins with the first message of the server; a turn that
nobody answered has one without chunks. A turn is over when the agent sends its next message, or
with the connection. `ended` says that it was over well: by the next message, by a close, or
because the agent went away after an answer that was whole. What ended otherwise has an `error`:
`reset` or `eof` where the server went without a close, `cancelled` where the agent did.

Three more facts, in fields that no turn would have otherwise:

    header  opcode   BINARY where the first message of the server is binary; else it is text
    trailer switch   the places, from 0, of the messages of another opcode than the one before
    trailer close    `1011 why`: the server closed with this code; 1005 is a close without one
    trailer closed   the agent did so, and with another code than 1000

Pings, pongs and how messages were cut into frames are transport, and not kept.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from traces.model import Chunk, Exchange, Headers, Request, Response, header

TEXT, BINARY = "TEXT", "BINARY"


def upgrades(request: Request) -> bool:
    """True for a request that asks for a WebSocket."""
    return (header(request.headers, "upgrade") or "").lower() == "websocket"


def declined(exchange: Exchange) -> Exchange:
    """An upgrade that is not granted: clients ask over HTTP instead.

    Codex does so at once after a 426; any other refusal it tries five times again.
    """
    data = b"no WebSocket here: ask over HTTP\n"
    headers = (
        ("content-type", "text/plain"),
        ("content-length", str(len(data))),
        ("upgrade", "HTTP/1.1"),  # RFC 9110 15.5.22: a 426 has to name what it speaks
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


class NoWebSocket:
    """A tap that declines every upgrade."""

    def request(self, exchange: Exchange) -> Exchange:
        asks = upgrades(exchange.request) and exchange.response is None
        return declined(exchange) if asks else exchange


def first(binary: bool) -> Headers:
    """The headers of an answer whose first message is binary, or text."""
    return (("opcode", BINARY),) if binary else ()


def last(
    binary: Sequence[bool], close: tuple[int, str] | None = None, *, by_agent: bool = False
) -> Headers:
    """The trailers of an answer whose messages are binary, or text, and how it was closed."""
    places = [place for place, (a, b) in enumerate(pairwise(binary), 1) if a != b]
    said = (("switch", " ".join(map(str, places))),) if places else ()
    if close is None or (by_agent and close[0] == 1000):
        return said
    code, why = close
    # Headers hold latin-1; a reason is any text, and keeps its bytes.
    why = why.encode("utf-8", "surrogateescape").decode("latin-1")
    return (*said, ("closed" if by_agent else "close", f"{code} {why}".rstrip()))


def binary(answer: Response) -> tuple[bool, ...]:
    """For each message of an answer whether it is binary."""
    now, out = header(answer.headers, "opcode") == BINARY, list[bool]()
    switches = {int(place) for place in (header(answer.trailers, "switch") or "").split()}
    for place in range(len(answer.chunks)):
        now ^= place in switches
        out.append(now)
    return tuple(out)


def close(answer: Response) -> tuple[int, str] | None:
    """The code and reason with which the server closed; None where it did not."""
    said = header(answer.trailers, "close")
    if said is None:
        return None
    code, _, why = said.partition(" ")
    return int(code), why.encode("latin-1").decode("utf-8", "replace")
