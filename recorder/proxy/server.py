"""The proxy: it sends the answers that the taps give, and those of servers.

    server = ProxyServer(confdir=Path("~/.stumble/ca").expanduser())
    watch = ConversationTap()
    taps = TapChain([watch, TapePlayer(recording, watch)])
    async with server.create_listener(taps, began=time.monotonic(), seqs=count(1)) as listener:
        await run_the_agent(proxy=listener.url)

Agents reach it as an HTTP proxy (`GET http://host/path`), directly (`GET /path` with a Host), or
with CONNECT and TLS, with HTTP/1.1 in all cases. The taps answer; requests they leave unanswered go
to the upstream, and are refused without one: there is no other way out. The code that can connect
to other hosts is in `upstream.py`, which nothing here imports at run time. A listener with a
fallback hands connections that are not HTTP/1.1 over to mitmproxy; without one they are refused.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from recorder.proxy.connection import AgentConnection
from recorder.proxy.tls import CertificateAuthority
from traces.clock import RunClock
from traces.model import Exchange
from traces.taps import TapChain

if TYPE_CHECKING:
    from recorder.proxy.mitm.fallback import MitmFallback
    from recorder.proxy.upstream import UpstreamClient

type ChunkDue = Callable[[Exchange, int], bool]
"""Whether the client has sent all that it had sent before this chunk of a recorded answer."""

HOLD_SECONDS = 600.0
"""Seconds for which a timed-out exchange is kept open if the agent never gives up."""

_CLOSING_TIMEOUT = 5.0


class ProxyServer:
    """Loads the certificate authority once and creates any number of listeners."""

    def __init__(self, *, confdir: Path) -> None:
        self._authority = CertificateAuthority(confdir)

    def create_listener(
        self,
        taps: TapChain,
        *,
        began: float,
        seqs: Iterator[int],
        upstream: "UpstreamClient | None" = None,
        port: int = 0,
        hold: float = HOLD_SECONDS,
        origins: Mapping[str, int] = {},
        fallback: "MitmFallback | None" = None,
        is_due: "ChunkDue" = lambda exchange, number: True,
    ) -> "RunListener":
        """Create a run's listener; enter it to listen on 127.0.0.1, exit it to close everything.

        `began` is the `time.monotonic` reading that is time 0 of the run. `origins` maps each
        origin that gets a port of its own to that port (0 for any); clients reach it there without
        a proxy.
        """
        listener = RunListener(
            self._authority, taps, RunClock(began), seqs, upstream, port, hold, origins, fallback
        )
        listener.is_due = is_due
        return listener


class RunListener:
    """The listening server of one run.

    An exception from a tap ends the run: it is stored in `failure`, `failed` is set, every
    connection is reset, no tap is called any more, and exiting the listener raises it.
    """

    def __init__(
        self,
        authority: CertificateAuthority,
        taps: TapChain,
        clock: RunClock,
        seqs: Iterator[int],
        upstream: "UpstreamClient | None",
        port: int,
        hold: float,
        origins: Mapping[str, int],
        fallback: "MitmFallback | None",
    ) -> None:
        self.fallback = fallback
        self.authority, self.taps, self.seqs, self.upstream = authority, taps, seqs, upstream
        self.port, self.hold = port, hold
        self.origins = dict(origins)
        """Each origin's local port."""
        self.bases: dict[str, str] = {}
        """Local base URL to the origin it represents."""
        self.loop: asyncio.AbstractEventLoop
        self.connections: set[AgentConnection] = set()
        self.failure: BaseException | None = None
        self.failed = asyncio.Event()
        self.on_failure: Callable[[], object] = lambda: None
        """Is called when the run fails."""
        self.over = False
        """No more connections are served."""
        self.draining = False
        """Nothing more is accepted, and each connection ends with its next answer."""
        self.untrusted: dict[str, str] = {}
        """Per authority, why TLS failed: the agent distrusts the CA, or supports only HTTP/2."""
        self.is_due: ChunkDue = lambda exchange, number: True
        """Whether a chunk of an answer may be sent; asked again after each request."""
        self._waiting: list[asyncio.Future[None]] = []
        self.clock = clock
        self.now = clock.now
        """Seconds since the run began."""
        self._empty = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._numbers = count(1)

    @property
    def url(self) -> str:
        """The value of the agent's proxy variables."""
        return f"http://127.0.0.1:{self.port}"

    def fail_run(self, error: BaseException) -> None:
        """End the run with an error."""
        if self.failure is None:
            self.failure, self.over = error, True
            self.failed.set()
            self.on_failure()
        for connection in tuple(self.connections):
            connection.reset()

    def note_request(self) -> None:
        """Wake what waits for the agent's next request."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def wait_for_request(self) -> None:
        """Wait until the taps have got the agent's next request."""
        waiter = self.loop.create_future()
        self._waiting.append(waiter)
        await waiter

    def remove_connection(self, connection: AgentConnection) -> None:
        """Remove a connection that has ended, with its response."""
        self.connections.discard(connection)
        if not self.connections:
            self._empty.set()

    async def __aenter__(self) -> Self:
        self.loop = asyncio.get_running_loop()
        try:
            self.port = await self._listen(self.port)
            for origin, requested_port in self.origins.items():
                self.origins[origin] = port = await self._listen(requested_port)
                for host in ("127.0.0.1", "localhost"):
                    self.bases[f"http://{host}:{port}"] = origin
        except OSError:
            for server in self._servers:
                server.close()
            raise
        return self

    async def _listen(self, port: int) -> int:
        server = await self.loop.create_server(
            self._new_connection, "127.0.0.1", port, backlog=1024
        )
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def serve_socket(self, listening: socket.socket) -> None:
        """Serve one more socket, such as one that listens in another network namespace."""
        self._servers.append(await self.loop.create_server(self._new_connection, sock=listening))

    def close_stale(self, head: float, idle: int) -> None:
        """End connections whose head is incomplete for `head` seconds, and all idle ones above a
        number, the longest idle first.
        """
        for connection in tuple(self.connections):
            if connection.head_seconds() > head:
                connection.hang_up()
        waiting = [each for each in self.connections if each.idle_seconds() > 0]
        waiting.sort(key=lambda each: each.idle_seconds(), reverse=True)
        for connection in waiting[: max(0, len(waiting) - idle)]:
            connection.close_idle()

    def drain(self) -> None:
        """Accept nothing more; open connections end with their next answer, which announces it."""
        self.draining = True
        for server in self._servers:
            server.close()

    def _new_connection(self) -> AgentConnection:
        return AgentConnection(self, next(self._numbers))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.over = True
        for server in self._servers:
            server.close()
        try:
            async with asyncio.timeout(_CLOSING_TIMEOUT):
                while self.connections:
                    self._empty.clear()
                    for connection in tuple(self.connections):
                        connection.drop()
                    await self._empty.wait()
                for server in self._servers:
                    await server.wait_closed()
        finally:
            self.clock.close()
        if self.failure is not None and (error is None or isinstance(error, Exception)):
            raise self.failure from error
