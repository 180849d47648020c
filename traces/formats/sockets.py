"""The messages of a WebSocket in a file of others, as turns: see `traces.websocket`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from traces.model import Chunk, Exchange, Request, Response
from traces.websocket import BINARY, TEXT, first, last


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of either side."""

    sent: bool
    """By the agent."""
    data: bytes
    binary: bool = False
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """How the connection ended: who closed it and with which code; `error` where nobody did."""

    at: float
    code: int | None = None
    why: str = ""
    by_agent: bool = False
    error: str | None = None


@dataclass(slots=True)
class _Turn:
    exchange: Exchange
    heard: list[Message] = field(default_factory=list)

    def over(self, at: float, closed: Closed | None = None) -> Exchange:
        binary = [each.binary for each in self.heard]
        close = (closed.code, closed.why) if closed and closed.code is not None else None
        answer = self.exchange.response or Response(
            status=101,
            headers=first(binary[0]) if binary else (),
            at=self.heard[0].at if self.heard else at,
        )
        error = closed.error if closed else None
        answer = replace(
            answer,
            chunks=tuple(Chunk(at=each.at, data=each.data) for each in self.heard),
            trailers=last(binary, close, by_agent=closed.by_agent if closed else False),
            ended=at if error is None else None,
        )
        return replace(self.exchange, response=answer, error=error)


def turns(
    upgrade: Exchange, messages: Iterable[Message], closed: Closed, seqs: Iterator[int]
) -> Iterator[Exchange]:
    """The upgrade and a turn for each message of the agent, in order."""
    turn, stream = _Turn(replace(upgrade, transport="websocket")), 0
    for message in messages:
        if not message.sent:
            turn.heard.append(message)
            continue
        yield turn.over(message.at)
        stream += 1
        turn = _Turn(
            Exchange(
                seq=next(seqs),
                request=Request(
                    method=BINARY if message.binary else TEXT,
                    url=upgrade.request.url,
                    body=message.data,
                ),
                started=message.at,
                connection=upgrade.connection,
                stream=stream,
                transport="websocket",
            )
        )
    yield turn.over(closed.at, closed)
