"""One exchange on its way to the agent: asked, answered, written, and told to the taps.

All that an agent gets goes through here, so what `done` reports is what was written, at the times
at which it was. Bytes that are due together are written together.

How an exchange that broke off is performed: `eof` is a clean end of the connection before the
answer is whole; after `timeout`, and after `cancelled` (the agent gave up while it was recorded),
nothing more comes and the connection is held until the agent gives up, or for the seconds that a
hang of ours says (`timeout: 2.5 s`); any other error is a
reset. A `refused` that has a response nevertheless is a refusal of ours and performed whole.
"""

import asyncio
import re
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING

from replay.h1 import Asked, Framing, framing
from replay.websocket import Frames, Turn, accepted, frames
from traces.model import Chunk, Exchange, Headers, Request, Response, header
from traces.websocket import upgrades

if TYPE_CHECKING:
    from replay.connection import Connection
    from replay.upstream import Upstream

_SECONDS = re.compile(r"timeout: ([\d.]+) s")
PIECE = 1 << 16
"""Bytes written at once, before asking whether the agent reads them."""


class Gone(Exception):
    """The agent has left, so what it was to get cannot be written."""


class Performance:
    """Performs the answer to one request on the connection it came from."""

    def __init__(self, line: "Connection", asked: Asked | Turn, url: str, stream: int) -> None:
        self._line, self._stage, self._asked = line, line.stage, asked
        request = _request(asked, url)
        socket = isinstance(asked, Turn) or upgrades(request)
        self._exchange = Exchange(
            seq=next(line.stage.seqs),
            connection=line.number,
            stream=stream,
            request=request,
            started=asked.started,
            transport="websocket" if socket else "http",
        )
        self._error: str | None = "cancelled"
        """How the exchange ends if the agent leaves now."""
        self._framing: Framing | Frames = Framing(b"", "none", False)
        self._answer: Response | None = None
        """The answer as far as it was written, without its chunks."""
        self._headed = False
        self._seen = self._exchange
        """What taps are shown while the answer is under way: it has a head and no chunks."""
        self._chunks: list[Chunk] = []
        self._out: list[bytes] = []
        self._due: list[bytes] = []
        """The chunks that are whole once `_out` is written."""
        self._part = b"", 0
        """A chunk that is not whole yet, and how much of it was written."""
        self._size = 0
        self._whole = False
        """The answer went out in one piece, and no tap knows of it yet."""
        self._at = 0.0
        self._trailers: Headers = ()
        self._ended: float | None = None

    async def run(self) -> None:
        """Returns when the agent has its answer or has left; raises what a tap raises."""
        try:
            with suppress(Gone):
                await self._serve()
        except asyncio.CancelledError:
            self._done()
            raise
        self._done()

    async def _serve(self) -> None:
        taps, upstream = self._stage.taps, self._stage.upstream
        self._exchange = exchange = taps.request(self._exchange)
        held = taps.holds(exchange)
        if exchange.response is None and exchange.error is None:
            if upgrades(exchange.request):
                exchange, held = refused(exchange, 426, "no WebSocket goes out"), False
            elif upstream is None:
                exchange, held = refused(exchange, 502, "no way out"), False
            elif held:
                exchange = await upstream.send(exchange, _unseen, _unseen)
                exchange = _in_its_pace(exchange, self._stage.now())
            else:
                return await self._pass_on(upstream)
        self._exchange = taps.response(exchange) if held else exchange
        return await self._perform()

    async def _perform(self) -> None:
        exchange = self._exchange
        response, error = exchange.response, exchange.error
        if response is not None and error is not None and _code(error) == "refused":
            error = None
        if response is not None:
            if response.at > self._stage.now():
                await self._until(response.at)
            length = sum([len(chunk.data) for chunk in response.chunks])
            self._open(response, length, error)
            due = length <= PIECE and _last(response) <= self._stage.now()
            for chunk in response.chunks:
                if due:
                    self._add(chunk.data)
                else:
                    await self._play(chunk)
        if error is not None:
            await self._break(error, self._stage.hold)
        elif response is not None:
            if response.ended is not None and self._waits_for_the_end(response):
                await self._until(response.ended)
            await self._finish(response.trailers)

    def _waits_for_the_end(self, response: Response) -> bool:
        """The end is something of its own; that of a turn is only where the server closes."""
        if self._framing.body == "messages":
            return header(response.trailers, "close") is not None
        return self._framing.body in ("chunked", "close")

    async def _pass_on(self, upstream: "Upstream") -> None:
        self._exchange = exchange = await upstream.send(self._exchange, self._head, self._chunk)
        if exchange.error is not None:
            await self._break(exchange.error, 0.0)
        elif exchange.response is not None:
            await self._finish(exchange.response.trailers)

    def _head(self, response: Response) -> None:
        self._open(response, None, None)
        self._write()

    def _chunk(self, chunk: Chunk) -> Awaitable[None] | None:
        self._add(chunk.data)
        self._write()
        return self._line.drained() if self._line.paused else None

    async def _until(self, at: float) -> None:
        """What is due before goes out first."""
        if at > self._stage.now():
            await self._flush()
            await self._stage.clock.until(at)

    def _open(self, response: Response, length: int | None, error: str | None) -> None:
        if isinstance(self._asked, Turn):
            self._framing = frames(response)
        else:
            switches = response.status == 101 and upgrades(self._exchange.request)
            if switches:
                response = accepted(self._exchange.request, response)
            cut = error is not None
            self._framing = framing(self._asked, response, length=length, cut=cut)
            if switches:
                self._framing = frames(response, self._framing.head)
                self._line.switch(self._exchange.request.url)
        self._answer = response
        self._out.append(self._framing.head)

    async def _play(self, chunk: Chunk) -> None:
        data = chunk.data
        if self._framing.body == "none" or not (data or self._framing.body == "messages"):
            return
        await self._until(chunk.at)
        if len(data) <= PIECE:
            self._add(data)
            if self._size > PIECE:
                await self._flush()
            return
        self._out.append(self._framing.before(len(data)))
        for start in range(0, len(data), PIECE):
            self._out.append(data[start : start + PIECE])
            self._write()
            self._part = data, start + PIECE
            if self._line.paused:
                await self._line.drained()
        self._out.append(self._framing.after())
        self._due.append(data)

    def _add(self, data: bytes) -> None:
        if self._framing.body == "messages" or (data and self._framing.body != "none"):
            self._out += (self._framing.before(len(data)), data, self._framing.after())
            self._due.append(data)
            self._size += len(data)

    async def _flush(self) -> None:
        self._write()
        if self._line.paused:
            await self._line.drained()

    def _write(self) -> None:
        self._send()
        self._tell()

    def _send(self) -> None:
        if out := b"".join(self._out):
            self._line.write(out)
            self._out.clear()
            self._size = 0
        self._at = self._stage.now()

    def _tell(self) -> None:
        at = self._at
        if self._answer is not None and not self._headed:
            self._headed = True
            self._answer = _answer(self._answer, at)
            self._seen = self._exchange.got(self._answer, None)
            self._stage.taps.head(self._seen)
        if self._due:
            self._part = b"", 0
            for data in self._due:
                chunk = Chunk(at=at, data=data)
                self._chunks.append(chunk)
                self._stage.taps.chunk(self._seen, chunk)
            self._due.clear()

    async def _finish(self, trailers: Headers) -> None:
        """The answer is whole."""
        self._out.append(self._framing.end(trailers))
        self._send()
        self._whole = not (self._headed or self._line.paused)
        if not self._whole:
            self._tell()
            await self._line.drained()
        self._trailers = trailers if self._framing.body in ("chunked", "messages") else ()
        self._ended = self._stage.now()
        self._error = self._exchange.error
        if not self._framing.stays:
            self._line.hang_up()

    async def _break(self, error: str, hold: float) -> None:
        """No (more) answer comes; a timeout is waited for only where `hold` says how long."""
        await self._flush()
        code = _code(error)
        if code in ("timeout", "cancelled") and hold:
            self._error = error
            await asyncio.sleep(min(hold, patience(error)))
            self._line.hang_up()
        elif code == "eof":
            self._line.hang_up()
        else:
            await self._line.delivered()
            self._line.reset()
        self._error = error

    def _done(self) -> None:
        if self._stage.failure is not None:
            return None  # the connection went down with the run: that is nothing the agent did
        if self._whole and self._answer is not None:
            chunks = [Chunk(at=self._at, data=data) for data in self._due]
            whole = _answer(self._answer, self._at, chunks, self._trailers, self._ended)
            return self._stage.taps.whole(self._exchange.got(whole, self._error))
        answer = self._answer if self._headed else None
        if answer is not None:
            data, written = self._part
            if written:
                self._chunks.append(Chunk(at=self._at, data=data[:written]))
            answer = _answer(answer, answer.at, self._chunks, self._trailers, self._ended)
        return self._stage.taps.done(self._exchange.got(answer, self._error))


def patience(error: str) -> float:
    """The seconds that a hung connection is held, as `timeout: 2.5 s` says; else without end."""
    said = _SECONDS.fullmatch(error)
    return float(said[1]) if said else inf


def _request(asked: Asked | Turn, url: str) -> Request:
    if isinstance(asked, Turn):
        return Request(method=asked.method, url=url, body=asked.data)
    return Request(method=asked.method, url=url, headers=asked.headers, body=asked.body)


def refused(exchange: Exchange, status: int, why: str) -> Exchange:
    """The exchange with a refusal of ours for an answer: nobody else was asked."""
    body = f"refused: {why}\n".encode()
    headers = (("content-type", "text/plain"), ("content-length", str(len(body))))
    response = Response(
        status=status,
        reason=HTTPStatus(status).phrase,
        headers=headers,
        chunks=(Chunk(at=0.0, data=body),),
    )
    return replace(exchange, response=response, error=f"refused: {why}", answered_by="refused")


def _last(response: Response) -> float:
    """When the last bytes of an answer are due."""
    return max([response.at, *[chunk.at for chunk in response.chunks]])


def _code(error: str) -> str:
    return error.partition(":")[0]


def _answer(
    planned: Response,
    at: float,
    chunks: Iterable[Chunk] = (),
    trailers: Headers = (),
    ended: float | None = None,
) -> Response:
    return Response(
        status=planned.status,
        headers=planned.headers,
        chunks=tuple(chunks),
        trailers=trailers,
        reason=planned.reason,
        version=planned.version,
        at=at,
        ended=ended,
    )


def _in_its_pace(exchange: Exchange, now: float) -> Exchange:
    """A stream that was held back begins now, with the gaps between its chunks as they were."""
    answer = exchange.response
    kind = header(answer.headers, "content-type") if answer is not None else None
    streams = exchange.transport == "websocket" or (kind or "").startswith("text/event-stream")
    if answer is None or not streams:
        return exchange
    return exchange.later(max(0.0, now - answer.at))


def _unseen(part: Response | Chunk) -> None:
    """A held answer is not for the agent yet."""
