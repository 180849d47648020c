"""The upstream client: the only code here that connects out; strict replay never loads it.

A fork sends live requests to an inner proxy (the recorder's mitmproxy, on loopback) in absolute
form, `https://` URLs too: the inner proxy does TLS with the provider. Fields about the agent's own
connection (RFC 9110 7.6.1, and `expect`) are not forwarded; all others keep their order and case.
If a request gets no response, the inner proxy sends a 502 with the field `x-stumble-error`, whose
value becomes the error of the exchange.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from traces.model import Chunk, Exchange, Headers, Request, Response, find_header

type HeadCallback = Callable[[Response], None]
type ChunkCallback = Callable[[Chunk], Awaitable[None] | None]

ERROR_HEADER = "x-stumble-error"
"""The field that distinguishes a missing response from a genuine 502."""

_HOP_HEADERS = {
    "connection",
    "proxy-connection",
    "keep-alive",
    "proxy-authorization",
    "expect",
    "upgrade",
}
_FRAMING_HEADERS = {"host", "content-length", "transfer-encoding"}
_MAX_QUEUED_BYTES = 1 << 18
"""Bytes of an answer that may wait for a slow agent before reading from the inner proxy pauses."""


class UpstreamClient(Protocol):
    """Answers requests that no tap answered."""

    async def send(self, exchange: Exchange, head: HeadCallback, chunk: ChunkCallback) -> Exchange:
        """Return the exchange with its answer or error; `head` and `chunk` get the parts first.

        `head` is called before the first chunk, and only if there is an answer. The awaitable that
        `chunk` may return is awaited before the next one.
        """
        ...


@dataclass(frozen=True, slots=True)
class _AnswerEnd:
    """The end: the answer is complete, or `error` is the reason that it is not."""

    at: float
    trailers: Headers
    error: str | None


type _AnswerPart = Response | Chunk | _AnswerEnd


class InnerProxy:
    """An HTTP proxy on loopback; times are seconds since `began`, a `time.monotonic` reading.

    `timeout` limits each single wait in seconds, not the entire exchange: a stream may be long.
    Raises OSError if the proxy is unreachable.
    """

    def __init__(self, host: str, port: int, began: float, *, timeout: float = 600.0) -> None:
        self._address = host, port
        self._began, self._timeout = began, timeout
        self._wires: set[_UpstreamConnection] = set()
        self._idle: list[_UpstreamConnection] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        async with asyncio.timeout(5):
            for connection in tuple(self._wires):
                connection.close()
                await connection.lost.wait()

    async def send(self, exchange: Exchange, head: HeadCallback, chunk: ChunkCallback) -> Exchange:
        idle = [connection for connection in self._idle if connection.is_usable]
        if idle:
            self._idle = idle[:-1]
            answer = await self._send_request(idle[-1], exchange, head, chunk)
            # A reused connection may have been closed while the request was in transit.
            if answer.response is not None or not idle[-1].silent:
                return answer
        return await self._send_request(await self._connect(), exchange, head, chunk)

    async def _connect(self) -> "_UpstreamConnection":
        loop = asyncio.get_running_loop()
        connection = _UpstreamConnection(self._began, self._timeout, self._wires)
        async with asyncio.timeout(self._timeout):
            await loop.create_connection(lambda: connection, *self._address)
        return connection

    async def _send_request(
        self,
        wire: "_UpstreamConnection",
        exchange: Exchange,
        head: HeadCallback,
        chunk: ChunkCallback,
    ) -> Exchange:
        answer: Response | None = None
        proxy_error: str | None = None
        chunks: list[Chunk] = []
        part: _AnswerPart | None = None
        try:
            wire.send_request(exchange.forwarded)
            while not isinstance(part := await wire.next_part(), _AnswerEnd):
                if isinstance(part, Response):
                    answer = part
                    proxy_error = (
                        find_header(part.headers, ERROR_HEADER) if part.status == 502 else None
                    )
                    if proxy_error is None:
                        head(part)
                elif proxy_error is None:
                    chunks.append(part)
                    if (pending := chunk(part)) is not None:
                        await pending
        finally:
            if isinstance(part, _AnswerEnd) and wire.is_usable:
                self._idle.append(wire)
            else:
                wire.close()
        if proxy_error is not None:
            return replace(exchange, error=proxy_error)
        if answer is not None:
            ended = part.at if part.error is None else None
            answer = replace(answer, chunks=tuple(chunks), trailers=part.trailers, ended=ended)
        return replace(exchange, response=answer, error=part.error)


class _UpstreamConnection(asyncio.Protocol):
    """One connection to the inner proxy: one request at a time, and the parts of its answer."""

    def __init__(self, began: float, timeout: float, wires: "set[_UpstreamConnection]") -> None:
        self.lost = asyncio.Event()
        self.silent = True
        """No byte of the answer arrived before the connection was lost."""
        self._began, self._timeout, self._wires = began, timeout, wires
        self._transport: asyncio.Transport
        self._parser = HttpResponseParser(self)
        self._parts: deque[_AnswerPart] = deque()
        self._queued = 0
        self._come = asyncio.Event()
        self._asking = self._keeps = self._head_only = self._headed = self._to_eof = False
        self._reading = True
        self._reason = b""
        self._fields: list[tuple[str, str]] = []
        self._at = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether another request can be sent here."""
        return self._keeps and not self._transport.is_closing()

    def send_request(self, request: Request) -> None:
        self._parser = HttpResponseParser(self)
        self.silent, self._asking = True, True
        self._keeps = self._headed = self._to_eof = False
        self._head_only = request.method == "HEAD"
        self._reason, self._fields = b"", []
        self._transport.write(_encode_proxy_request(request))

    async def next_part(self) -> "_AnswerPart":
        """Return the next part of the answer, or its end with an error after a timeout."""
        if not self._parts:
            self._come.clear()
            try:
                async with asyncio.timeout(self._timeout):
                    await self._come.wait()
            except TimeoutError:
                self.silent = False
                return _AnswerEnd(self._at, (), f"timeout: nothing came for {self._timeout:g} s")
        part = self._parts.popleft()
        if isinstance(part, Chunk):
            self._queued -= len(part.data)
            self._set_reading(self._queued < _MAX_QUEUED_BYTES)
        return part

    def close(self) -> None:
        self._transport.abort()

    def _set_reading(self, wanted: bool) -> None:
        if wanted != self._reading and not self._transport.is_closing():
            self._reading = wanted
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    def _put_part(self, part: "_AnswerPart") -> None:
        self._parts.append(part)
        self._come.set()

    def _end_answer(self, error: str | None = None) -> None:
        if self._asking:
            self._asking = False
            trailers = tuple(self._fields) if self._headed and error is None else ()
            self._put_part(_AnswerEnd(self._at, trailers, error))

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._wires.add(self)

    def data_received(self, data: bytes) -> None:
        self._at, self.silent = time.monotonic() - self._began, False
        if not self._asking:
            return self._transport.abort()  # an answer without a request
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._end_answer("protocol: an upgrade that nobody asked for")
        except HttpParserError as error:
            self._end_answer(f"protocol: {error}")
        if self._head_only and self._headed:
            self._end_answer()
        return self._set_reading(self._queued < _MAX_QUEUED_BYTES)

    def eof_received(self) -> None:
        self._at = time.monotonic() - self._began
        self._end_answer(None if self._to_eof else "eof: the inner proxy closed the connection")

    def connection_lost(self, error: Exception | None) -> None:
        self._end_answer(
            f"reset: {error}" if error else "eof: the inner proxy closed the connection"
        )
        self._wires.discard(self)
        self.lost.set()

    # Callbacks of the parser.

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
        self._put_part(
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
        self._put_part(Chunk(at=self._at, data=data))

    def on_message_complete(self) -> None:
        if self._headed:
            self._end_answer()


def _encode_proxy_request(request: Request) -> bytes:
    """Encode a request for a proxy. Its body is complete, so chunks become one."""
    dropped = set(_HOP_HEADERS)
    framing: str | None = None
    for name, value in request.headers:
        match name.lower():
            case "connection" | "proxy-connection":
                dropped |= {token.strip().lower() for token in value.split(",")} - _FRAMING_HEADERS
            case "content-length" | "transfer-encoding" as framing:
                pass
    lines = [f"{name}: {value}" for name, value in request.headers if name.lower() not in dropped]
    body = request.body
    if framing == "transfer-encoding":
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    elif framing is None and body:
        lines.append(f"content-length: {len(body)}")
    if find_header(request.headers, "host") is None:
        lines.append(f"host: {request.url.split('/')[2]}")
    head = "\r\n".join([f"{request.method} {request.url} HTTP/1.1", *lines, "", ""])
    return head.encode("latin-1") + body
