"""The way out: the only code of this room that reaches anybody, so strict replay never loads it.

A fork hands what must go live to an inner proxy (the recorder's mitmproxy, on loopback) as an
absolute-form request, `https://` URLs too: TLS to the provider is the inner proxy's business.
The fields that speak of the agent's own connection (RFC 9110 7.6.1, and `expect`) are not passed
on; all others keep their order and case. When nothing came of a request, the inner proxy says so
by a 502 with a field `x-stumble-error`, whose value is then the error of the exchange.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from traces.model import Chunk, Exchange, Headers, Request, Response, header

type Head = Callable[[Response], None]
type Piece = Callable[[Chunk], Awaitable[None] | None]

ERROR = "x-stumble-error"
"""The field by which an inner proxy tells that there was no answer, from an answer with a 502."""

_HOP = {"connection", "proxy-connection", "keep-alive", "proxy-authorization", "expect", "upgrade"}
_FRAMING = {"host", "content-length", "transfer-encoding"}
_QUEUED = 1 << 18
"""Bytes of an answer that may wait for a slow agent before the inner proxy is not read."""


class Upstream(Protocol):
    """Whoever answers what no tap did."""

    async def send(self, exchange: Exchange, head: Head, chunk: Piece) -> Exchange:
        """The exchange with its answer or error, after `head` and `chunk` saw the parts of it.

        `head` is called before the first chunk, and only if there is an answer. What `chunk`
        returns is awaited before the next one.
        """
        ...


@dataclass(frozen=True, slots=True)
class _End:
    """Nothing more comes: the answer is whole, or `error` says why it is not."""

    at: float
    trailers: Headers
    error: str | None


type _Part = Response | Chunk | _End


class InnerProxy:
    """An HTTP proxy on loopback; times are seconds since `began`, a reading of `monotonic`.

    `timeout` bounds every single wait in seconds, not the whole exchange: a stream may be long.
    A proxy that cannot be reached is our own failure and raises OSError.
    """

    def __init__(self, host: str, port: int, began: float, *, timeout: float = 600.0) -> None:
        self._address = host, port
        self._began, self._timeout = began, timeout
        self._wires: set[_Wire] = set()
        self._idle: list[_Wire] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        async with asyncio.timeout(5):
            for wire in tuple(self._wires):
                wire.close()
                await wire.lost.wait()

    async def send(self, exchange: Exchange, head: Head, chunk: Piece) -> Exchange:
        idle = [wire for wire in self._idle if wire.usable]
        if idle:
            self._idle = idle[:-1]
            answer = await self._ask(idle[-1], exchange, head, chunk)
            # A connection that was kept may have been closed while the request was on its way.
            if answer.response is not None or not idle[-1].silent:
                return answer
        return await self._ask(await self._connect(), exchange, head, chunk)

    async def _connect(self) -> "_Wire":
        loop = asyncio.get_running_loop()
        wire = _Wire(self._began, self._timeout, self._wires)
        async with asyncio.timeout(self._timeout):
            await loop.create_connection(lambda: wire, *self._address)
        return wire

    async def _ask(self, wire: "_Wire", exchange: Exchange, head: Head, chunk: Piece) -> Exchange:
        answer: Response | None = None
        told: str | None = None
        chunks: list[Chunk] = []
        part: _Part | None = None
        try:
            wire.ask(exchange.forwarded)
            while not isinstance(part := await wire.part(), _End):
                if isinstance(part, Response):
                    answer = part
                    told = header(part.headers, ERROR) if part.status == 502 else None
                    if told is None:
                        head(part)
                elif told is None:
                    chunks.append(part)
                    if (slow := chunk(part)) is not None:
                        await slow
        finally:
            if isinstance(part, _End) and wire.usable:
                self._idle.append(wire)
            else:
                wire.close()
        if told is not None:
            return replace(exchange, error=told)
        if answer is not None:
            ended = part.at if part.error is None else None
            answer = replace(answer, chunks=tuple(chunks), trailers=part.trailers, ended=ended)
        return replace(exchange, response=answer, error=part.error)


class _Wire(asyncio.Protocol):
    """One connection to the inner proxy: one request at a time, and the parts of its answer."""

    def __init__(self, began: float, timeout: float, wires: "set[_Wire]") -> None:
        self.lost = asyncio.Event()
        self.silent = True
        """Not one byte of the answer came before the connection was lost."""
        self._began, self._timeout, self._wires = began, timeout, wires
        self._transport: asyncio.Transport
        self._parser = HttpResponseParser(self)
        self._parts: deque[_Part] = deque()
        self._queued = 0
        self._come = asyncio.Event()
        self._asking = self._keeps = self._head_only = self._headed = self._to_eof = False
        self._reading = True
        self._reason = b""
        self._fields: list[tuple[str, str]] = []
        self._at = 0.0

    @property
    def usable(self) -> bool:
        """Another request can be asked here."""
        return self._keeps and not self._transport.is_closing()

    def ask(self, request: Request) -> None:
        self._parser = HttpResponseParser(self)
        self.silent, self._asking = True, True
        self._keeps = self._headed = self._to_eof = False
        self._head_only = request.method == "HEAD"
        self._reason, self._fields = b"", []
        self._transport.write(_bytes(request))

    async def part(self) -> "_Part":
        """The next part of the answer; its end, with an error, when nothing came for too long."""
        if not self._parts:
            self._come.clear()
            try:
                async with asyncio.timeout(self._timeout):
                    await self._come.wait()
            except TimeoutError:
                self.silent = False
                return _End(self._at, (), f"timeout: nothing came for {self._timeout:g} s")
        part = self._parts.popleft()
        if isinstance(part, Chunk):
            self._queued -= len(part.data)
            self._read(self._queued < _QUEUED)
        return part

    def close(self) -> None:
        self._transport.abort()

    def _read(self, wanted: bool) -> None:
        if wanted != self._reading and not self._transport.is_closing():
            self._reading = wanted
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    def _put(self, part: "_Part") -> None:
        self._parts.append(part)
        self._come.set()

    def _end(self, error: str | None = None) -> None:
        if self._asking:
            self._asking = False
            trailers = tuple(self._fields) if self._headed and error is None else ()
            self._put(_End(self._at, trailers, error))

    # What the loop says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._wires.add(self)

    def data_received(self, data: bytes) -> None:
        self._at, self.silent = time.monotonic() - self._began, False
        if not self._asking:
            return self._transport.abort()  # an answer to nothing
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._end("protocol: an upgrade that nobody asked for")
        except HttpParserError as error:
            self._end(f"protocol: {error}")
        if self._head_only and self._headed:
            self._end()
        return self._read(self._queued < _QUEUED)

    def eof_received(self) -> None:
        self._at = time.monotonic() - self._began
        self._end(None if self._to_eof else "eof: the inner proxy closed the connection")

    def connection_lost(self, error: Exception | None) -> None:
        self._end(f"reset: {error}" if error else "eof: the inner proxy closed the connection")
        self._wires.discard(self)
        self.lost.set()

    # What the parser says.

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name.decode("latin-1"), value.rstrip(b" \t").decode("latin-1")))

    def on_headers_complete(self) -> None:
        status, headers = self._parser.get_status_code(), tuple(self._fields)
        reason, self._reason, self._fields = self._reason, b"", []
        self._headed = status >= 200
        if not self._headed:
            return  # 100 and 103 only announce the answer
        framed = any(k.lower() in ("content-length", "transfer-encoding") for k, _ in headers)
        self._to_eof = not framed and status not in (204, 304)
        self._keeps = self._parser.should_keep_alive()
        version = f"HTTP/{self._parser.get_http_version()}"
        self._put(
            Response(
                status=status,
                headers=headers,
                reason=reason.decode("latin-1"),
                version=version,
                at=self._at,
            )
        )

    def on_body(self, data: bytes) -> None:
        self._queued += len(data)
        self._put(Chunk(at=self._at, data=data))

    def on_message_complete(self) -> None:
        if self._headed:
            self._end()


def _bytes(request: Request) -> bytes:
    """The request for a proxy. The body was read whole, so chunks of it become one."""
    dropped = set(_HOP)
    framing: str | None = None
    for name, value in request.headers:
        match name.lower():
            case "connection" | "proxy-connection":
                dropped |= {token.strip().lower() for token in value.split(",")} - _FRAMING
            case "content-length" | "transfer-encoding" as framing:
                pass
    lines = [f"{name}: {value}" for name, value in request.headers if name.lower() not in dropped]
    body = request.body
    if framing == "transfer-encoding":
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    elif framing is None and body:
        lines.append(f"content-length: {len(body)}")
    if header(request.headers, "host") is None:
        lines.append(f"host: {request.url.split('/')[2]}")
    head = "\r\n".join([f"{request.method} {request.url} HTTP/1.1", *lines, "", ""])
    return head.encode("latin-1") + body
