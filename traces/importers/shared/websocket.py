"""WebSocket messages in an imported file, as turns: see `traces.bodies.websocket`."""

from collections.abc import Iterable, Iterator
from copy import replace

from msgspec import Struct, field

from traces.bodies.websocket import (
    BINARY_METHOD,
    TEXT_METHOD,
    make_websocket_headers,
    make_websocket_trailers,
)
from traces.model import Chunk, Exchange, Request, Response


class ImportedSocketMessage(Struct, frozen=True, kw_only=True):
    """One message of either side."""

    sent: bool
    """Sent by the agent."""
    data: bytes
    binary: bool = False
    at: float = 0.0


class WebSocketClose(Struct, frozen=True, kw_only=True):
    """How the connection ended: the side that closed it and the code; `error` if neither did."""

    at: float
    code: int | None = None
    why: str = ""
    by_agent: bool = False
    error: str | None = None


class _WebSocketTurn(Struct):
    exchange: Exchange
    received: list[ImportedSocketMessage] = field(default_factory=list)

    def to_exchange(self, at: float, closed: WebSocketClose | None = None) -> Exchange:
        binary_flags = [each.binary for each in self.received]
        close = (closed.code, closed.why) if closed and closed.code is not None else None
        response = self.exchange.response or Response(
            status=101,
            headers=make_websocket_headers(binary_flags[0]) if binary_flags else (),
            at=self.received[0].at if self.received else at,
        )
        error = closed.error if closed else None
        response = replace(
            response,
            chunks=tuple(Chunk(at=each.at, data=each.data) for each in self.received),
            trailers=make_websocket_trailers(
                binary_flags, close, by_agent=closed.by_agent if closed else False
            ),
            ended=at if error is None else None,
        )
        return replace(self.exchange, response=response, error=error)


def split_into_turns(
    upgrade: Exchange,
    messages: Iterable[ImportedSocketMessage],
    closed: WebSocketClose,
    seqs: Iterator[int],
) -> Iterator[Exchange]:
    """Yield the upgrade, and a turn for each message of the agent, in order."""
    turn, stream = _WebSocketTurn(replace(upgrade, transport="websocket")), 0
    for message in messages:
        if not message.sent:
            turn.received.append(message)
            continue
        yield turn.to_exchange(message.at)
        stream += 1
        turn = _WebSocketTurn(
            Exchange(
                seq=next(seqs),
                request=Request(
                    method=BINARY_METHOD if message.binary else TEXT_METHOD,
                    url=upgrade.request.url,
                    body=message.data,
                ),
                started=message.at,
                connection=upgrade.connection,
                stream=stream,
                transport="websocket",
            )
        )
    yield turn.to_exchange(closed.at, closed)
