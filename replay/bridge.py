"""Turns of a WebSocket that must go live, sent as requests over HTTP.

After a fork the provider has never seen the connection that the turns belong to, nor the answers
on the tape that they go on from. So a turn is asked as a POST with the whole conversation, and the
events of its stream are the messages of its answer. A provider that answers with anything but
a stream is told as the error event that it sends over WebSocket.
"""

import json
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace

from replay.upstream import Head, Piece, Upstream
from traces.dialects import kept, lens
from traces.encoding import plain
from traces.model import Chunk, Exchange, Headers, Request, Response, header
from traces.sse import events
from traces.websocket import upgrades

_NOT_PASSED = (
    "upgrade", "connection", "host", "content-length", "content-type", "accept", "accept-encoding",
    "openai-beta",
)  # fmt: skip


class Bridge:
    """A tap that keeps the conversations of turns, and the way out for those that go live."""

    def __init__(self, inner: Upstream) -> None:
        self._inner = inner
        self._opened: dict[int, Headers] = {}
        self._kept: dict[str, kept.Items] = {}

    def request(self, exchange: Exchange) -> Exchange:
        """Remember how a connection was opened."""
        if upgrades(exchange.request):
            self._opened[exchange.connection] = exchange.request.headers
        return exchange

    def done(self, exchange: Exchange) -> None:
        """Remember what was said and answered, as it went on: a struck result stays struck."""
        if not _is_turn(exchange) or exchange.response is None:
            return
        answer = kept.answered(chunk.data for chunk in exchange.response.chunks)
        if answer is not None:
            id, items = answer
            self._kept[id] = (*self._before(exchange), *kept.asked(exchange.forwarded.body), *items)

    def _before(self, exchange: Exchange) -> kept.Items:
        return self._kept.get(kept.previous(exchange.request.body) or "", ())

    async def send(self, exchange: Exchange, head: Head, chunk: Piece) -> Exchange:
        """As of any upstream; a turn gets messages for an answer."""
        if not _is_turn(exchange):
            return await self._inner.send(exchange, head, chunk)
        told = _Events(head, chunk)
        post = replace(exchange, request=self._post(exchange), edits=(), transport="http")
        got = await self._inner.send(post, told.head, told.chunk)
        await told.over()
        answer = got.response and replace(told.answer, ended=got.response.ended)
        return replace(exchange, response=answer, error=got.error)

    def _post(self, exchange: Exchange) -> Request:
        opened = self._opened.get(exchange.connection, ())
        headers = tuple(
            (name, value)
            for name, value in opened
            if name.lower() not in _NOT_PASSED and not name.lower().startswith("sec-websocket-")
        )
        told = (("content-type", "application/json"), ("accept", "text/event-stream"))
        body = kept.resent(exchange.forwarded.body, self._before(exchange))
        length = ("content-length", str(len(body)))
        url = exchange.request.url
        return Request(method="POST", url=url, headers=(*headers, *told, length), body=body)


def _is_turn(exchange: Exchange) -> bool:
    asks = exchange.transport == "websocket" and not upgrades(exchange.request)
    return asks and lens(exchange.request) is not None


@dataclass(slots=True)
class _Events:
    """The stream of an answer, cut into messages as it comes."""

    _head: Head
    _chunk: Piece
    _got: Response | None = None
    _text: bytes = b""
    _told: list[Chunk] = field(default_factory=list)

    @property
    def answer(self) -> Response:
        """What the agent has been told."""
        at = self._told[0].at if self._told else 0.0
        return Response(status=101, at=at, chunks=tuple(self._told))

    def head(self, response: Response) -> None:
        self._got = response

    def chunk(self, chunk: Chunk) -> Awaitable[None] | None:
        self._text = (self._text + chunk.data).replace(b"\r\n", b"\n")
        if not self._streams:
            return None
        messages = [event.data.encode() for event in events(self._text)]
        self._text = self._text.rpartition(b"\n\n")[2]
        said = [message for message in messages if message != b"[DONE]"]
        return self._tell(said, chunk.at) if said else None

    async def over(self) -> None:
        """What did not come as a stream is one error event."""
        if self._got is not None and not self._streams:
            await self._tell([_error(self._got, self._text)], self._got.at)

    @property
    def _streams(self) -> bool:
        assert self._got is not None
        kind = header(self._got.headers, "content-type") or ""
        return self._got.status == 200 and kind.startswith("text/event-stream")

    async def _tell(self, messages: list[bytes], at: float) -> None:
        for data in messages:
            self._told.append(Chunk(at=at, data=data))
            if len(self._told) == 1:
                self._head(replace(self.answer, chunks=()))
            slow = self._chunk(self._told[-1])
            if slow is not None:
                await slow


def _error(response: Response, body: bytes) -> bytes:
    text = plain(response.headers, body) or b""
    try:
        said = json.loads(text)
    except ValueError:
        said = {"message": text.decode("utf-8", "replace")}
    error = said.get("error", said) if isinstance(said, dict) else said
    return json.dumps({"type": "error", "status": response.status, "error": error}).encode()
