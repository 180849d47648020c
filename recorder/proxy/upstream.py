"""The upstream client: sends requests that no tap answered to the servers that they name.

It is the only code of the proxy that opens connections, except for mitmproxy's; a strict replay
never loads it. Each connection of an agent has connections of its own to the servers, as many as
the agent would have, so that the agent sees their ends, and a server sees the agent's. A request is
never repeated.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import replace
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import certifi
from msgspec import Struct, field

from recorder.proxy.corporate_proxy import (
    ProxyRefusedError,
    UpstreamProxy,
    connect_through_proxy,
    explain_proxy_login,
)
from recorder.proxy.errors import to_connection_error
from recorder.proxy.http1_response import AnswerEnd, AnswerPart, encode_request
from recorder.proxy.origin_connection import OriginConnection, TakePart, UpstreamFailedError
from recorder.proxy.route import LOOPBACK_NAMES, Origin, UpstreamRoute, split_origin
from recorder.proxy.tls import ClientHello, TlsConnection
from traces.model import Chunk, Exchange, Headers, Response, find_header

type HeadCallback = Callable[[Response], None]
type ChunkCallback = Callable[[Chunk], Awaitable[None] | None]

NO_HEADERS: Headers = ()
_CLOSING_TIMEOUT = 5.0
_READ_SIZE = 1 << 16


class AgentLine(Protocol):
    """The agent's connection, as far as its connections to servers concern it."""

    number: int

    @property
    def local_port(self) -> int: ...
    @property
    def hello(self) -> ClientHello | None: ...
    def on_upstream_data(self, raw: bytes) -> None: ...
    def on_upstream_end(self, *, reset: bool, truncated: bool) -> None: ...


class UpstreamClient(Protocol):
    """Answers requests that no tap answered."""

    def attach(self, line: AgentLine) -> None:
        """A connection of the agent begins."""
        ...

    def release(self, line: AgentLine, *, reset: bool) -> None:
        """A connection of the agent has ended."""
        ...

    async def send(self, exchange: Exchange, head: HeadCallback, chunk: ChunkCallback) -> Exchange:
        """Return the exchange with its answer or error; `head` and `chunk` get the parts first.

        `head` is called before the first chunk, and only if there is an answer. The awaitable that
        `chunk` may return is awaited before the next one.
        """
        ...

    async def relay(self, exchange: Exchange, version: str, take: TakePart) -> AnswerEnd:
        """Give the bytes of the answer to `take`; return how it ended.

        `version` is that of the agent's HTTP, as in `1.1`.
        """
        ...


class _Link(Struct):
    """The connections to servers of one connection of the agent."""

    line: AgentLine
    connections: dict[Origin, OriginConnection] = field(default_factory=dict)

    def on_idle_data(self, raw: bytes) -> None:
        if len(self.connections) == 1:
            self.line.on_upstream_data(raw)

    def on_idle_end(self, connection: OriginConnection, *, reset: bool, truncated: bool) -> None:
        """Let the agent see the end, if it has no other server on this connection."""
        known = connection in self.connections.values()
        if known and len(self.connections) == 1:
            self.line.on_upstream_end(reset=reset, truncated=truncated)
        self.connections = {k: v for k, v in self.connections.items() if v is not connection}


class OriginClient:
    """Speaks HTTP/1.1 with servers, over TCP or TLS, directly or through upstream proxies.

    Times are seconds since `began`, a `time.monotonic` reading. `refusals` gets the upstream
    proxies that rejected the login, and what to do.
    """

    def __init__(self, route: UpstreamRoute, began: float, refusals: dict[str, str]) -> None:
        self._route, self._began, self._refusals = route, began, refusals
        self._links: dict[int, _Link] = {}
        self._open: set[OriginConnection] = set()
        self._make_context = lru_cache(maxsize=16)(self._build_context)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        async with asyncio.timeout(_CLOSING_TIMEOUT):
            for connection in tuple(self._open):
                connection.abort()
                await connection.lost.wait()

    def attach(self, line: AgentLine) -> None:
        self._links[line.number] = _Link(line)

    def release(self, line: AgentLine, *, reset: bool) -> None:
        link = self._links.pop(line.number, None)
        for connection in link.connections.values() if link else ():
            if reset:
                connection.abort(reset=True)
            else:
                connection.close()

    async def send(self, exchange: Exchange, head: HeadCallback, chunk: ChunkCallback) -> Exchange:
        answer: Response | None = None
        chunks: list[Chunk] = []
        ended = 0.0
        unparsed: Callable[[], bytes] = bytes

        def take(part: AnswerPart) -> Awaitable[None] | None:
            nonlocal answer, ended, unparsed
            ended, unparsed = part.at, part.find_unparsed
            if part.head is not None:
                answer = part.head
                head(answer)
            waits = []
            for data in part.pieces:
                chunks.append(Chunk(at=part.at, data=data))
                if (pending := chunk(chunks[-1])) is not None:
                    waits.append(pending)
            return _await_in_order(waits) if waits else None

        end = await self.relay(exchange, "1.1", take)
        if end.instead is not None:
            return replace(exchange, response=end.instead, error=end.error)
        if answer is not None:
            answer = replace(
                answer,
                chunks=tuple(chunks),
                trailers=end.trailers,
                ended=ended if end.error is None else None,
            )
        return replace(exchange, response=answer, error=end.error, unparsed=unparsed())

    async def relay(self, exchange: Exchange, version: str, take: TakePart) -> AnswerEnd:
        request, link = exchange.forwarded, self._links[exchange.connection]
        connection: OriginConnection | None = None
        try:
            origin = split_origin("/".join(request.url.split("/", 3)[:3]))
            connection = link.connections.get(origin)
            if connection is None or not connection.is_usable:
                link.connections.pop(origin, None)
                connection = await self._connect(link, origin)
                link.connections[origin] = connection
        except ProxyRefusedError as error:
            if error.answer.status == 407:
                self._note_login(error.outer, error.answer.headers)
            return AnswerEnd(to_connection_error(error), instead=error.answer)
        except UpstreamFailedError as error:
            return AnswerEnd(str(error))
        except OSError as error:
            return AnswerEnd(to_connection_error(error))
        except ValueError as error:
            return AnswerEnd(f"refused: {error}")
        target, more = _get_path(request.url), NO_HEADERS
        outer = self._route.find_proxy(*origin) if origin.scheme == "http" else None
        if outer is not None:
            target, take = request.url, self._watch_login(outer, take)
            more = (("Proxy-Authorization", outer.login),) if outer.login else ()
        head, body = encode_request(request, target, version, more)
        return await connection.ask(head, body, take, head_only=request.method == "HEAD")

    async def _connect(self, link: _Link, origin: Origin) -> OriginConnection:
        """Connect to a server. Raises OSError or UpstreamFailedError."""
        host, port = self._route.find_address(origin.host, origin.port)
        if port == link.line.local_port and host in LOOPBACK_NAMES:
            raise ConnectionRefusedError("this is the proxy itself")
        tls: TlsConnection | None = None
        if origin.scheme == "https":
            hello = link.line.hello
            # A server that is offered HTTP/2 too chooses it, and this side speaks HTTP/1.1.
            alpn = ("http/1.1",) if hello and hello.alpn else ()
            context = self._make_context(alpn, origin.host in self._route.insecure)
            tls = TlsConnection(context, (hello and hello.sni) or origin.host)
        connection = OriginConnection(self._now, link, tls, self._open.discard)
        try:
            if (outer := self._route.find_proxy(*origin)) is None:
                await _connect_to_any(connection, host, port)
            else:
                await self._connect_through(outer, (host, port), connection)
            self._open.add(connection)
            await connection.start_tls()
        except asyncio.CancelledError:
            if connection in self._open:
                connection.abort()
            raise
        return connection

    async def _connect_through(
        self, outer: UpstreamProxy, address: tuple[str, int], connection: OriginConnection
    ) -> None:
        tunnel = connection.has_tls  # many proxies tunnel only TLS
        trust = self._make_context(())
        reader, writer = await connect_through_proxy(outer, *address, trust, tunnel=tunnel)
        transport = writer.transport
        connection.opener = writer
        transport.set_protocol(connection)
        connection.connection_made(transport)
        self._open.add(connection)
        with suppress(TimeoutError):
            async with asyncio.timeout(0):  # what came with the proxy's answer, its end included
                while early := await reader.read(_READ_SIZE):
                    connection.data_received(early)
                connection.eof_received()
                transport.close()
        if transport.is_closing():  # its loss may have gone to the earlier protocol
            connection.connection_lost(None)

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _build_context(self, alpn: tuple[str, ...], insecure: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=_find_trust(self._route.ca_file))
        # Many CAs of companies lack extensions that strict verification requires.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if self._route.client_cert is not None:
            context.load_cert_chain(self._route.client_cert)
        return context

    def _watch_login(self, outer: UpstreamProxy, take: TakePart) -> TakePart:
        def watch(part: AnswerPart) -> Awaitable[None] | None:
            if part.head is not None and part.head.status == 407:
                self._note_login(outer, part.head.headers)
            return take(part)

        return watch

    def _note_login(self, outer: UpstreamProxy, headers: Headers) -> None:
        challenge = find_header(headers, "proxy-authenticate")
        self._refusals[outer.public_url] = explain_proxy_login(outer, challenge)


def _find_trust(ca_file: Path | None) -> str:
    return str(ca_file) if ca_file else certifi.where()


def _get_path(url: str) -> str:
    """Return the target of a request line in origin form; `*` for a URL without a path."""
    _, slash, path = url.partition("://")[2].partition("/")
    return slash + path or "*"


async def _await_in_order(waits: list[Awaitable[None]]) -> None:
    for pending in waits:
        await pending


async def _connect_to_any(connection: OriginConnection, host: str, port: int) -> None:
    """Connect to the first address of a host that answers. Raises OSError.

    The lookup is a wait of its own, since one that is cancelled within `create_connection` would be
    reported as an error that nobody asked for.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    *others, last = dict.fromkeys(str(address[0]) for *_, address in found)
    for each in others:
        try:
            await loop.create_connection(lambda: connection, each, port)
        except OSError:
            continue
        return
    await loop.create_connection(lambda: connection, last, port)
