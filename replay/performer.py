"""The performer: a proxy-shaped server that performs answers and never decides what they are.

    performer = Performer(confdir=Path("~/.stumble/ca").expanduser())
    taps = Taps([Player(recording)])
    async with performer.stage(taps, began=time.monotonic(), seqs=count(1)) as stage:
        await run_the_agent(proxy=stage.url)

Agents reach it as an HTTP proxy (`GET http://host/path`), directly (`GET /path` with a Host), or
with CONNECT and TLS, HTTP/1.1 in all cases. The taps answer; what they leave unanswered goes to
the upstream, and without one it is refused: there is no other way out of here. The code that can
reach anybody stands in `upstream.py`, which nothing here imports while it runs.
"""

import asyncio
import socket
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from replay.connection import Connection
from replay.tls import Authority
from traces.clock import Clock
from traces.taps import Taps

if TYPE_CHECKING:
    from replay.upstream import Upstream

HOLD = 600.0
"""Seconds for which an exchange that timed out is held open when the agent never gives up."""

_CLOSING = 5.0


class Performer:
    """Loads the certificate authority once and serves any number of stages."""

    def __init__(self, *, confdir: Path) -> None:
        self._authority = Authority(confdir)

    def stage(
        self,
        taps: Taps,
        *,
        began: float,
        seqs: Iterator[int],
        upstream: "Upstream | None" = None,
        port: int = 0,
        hold: float = HOLD,
        origins: Mapping[str, int] = {},
    ) -> "Stage":
        """Where one run takes place; enter it to listen on 127.0.0.1, leave it to end everything.

        `began` is the reading of `time.monotonic` that is time 0 of the run; `origins` have a port
        of their own (0 for any), at which they are asked without a proxy.
        """
        return Stage(self._authority, taps, began, seqs, upstream, port, hold, origins)


class Stage:
    """A listening performer for one run.

    A tap that raises ends the run: its exception is `failure`, `failed` is set, every connection
    is reset, no tap is told anything more, and leaving the stage raises it.
    """

    def __init__(
        self,
        authority: Authority,
        taps: Taps,
        began: float,
        seqs: Iterator[int],
        upstream: "Upstream | None",
        port: int,
        hold: float,
        origins: Mapping[str, int],
    ) -> None:
        self.authority, self.taps, self.seqs, self.upstream = authority, taps, seqs, upstream
        self.port, self.hold = port, hold
        self.origins = dict(origins)
        """Origins and the ports that stand for them."""
        self.bases: dict[str, str] = {}
        """The beginning of a URL of ours, to the one for which it stands."""
        self.loop: asyncio.AbstractEventLoop
        self.connections: set[Connection] = set()
        self.failure: BaseException | None = None
        self.failed = asyncio.Event()
        self.over = False
        """Nobody is served any more."""
        self.untrusted: dict[str, str] = {}
        """Why TLS failed, per authority asked for: agents that do not trust us, h2-only ones."""
        self.clock = Clock(began)
        self.now = self.clock.now
        """Seconds since the run began."""
        self._empty = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._numbers = count(1)

    @property
    def url(self) -> str:
        """What the agent's proxy variables are set to."""
        return f"http://127.0.0.1:{self.port}"

    def fail(self, error: BaseException) -> None:
        """Ends the run."""
        if self.failure is None:
            self.failure, self.over = error, True
            self.failed.set()
        for connection in tuple(self.connections):
            connection.reset()

    def left(self, connection: Connection) -> None:
        """A connection is over, and what was performed on it."""
        self.connections.discard(connection)
        if not self.connections:
            self._empty.set()

    async def __aenter__(self) -> Self:
        self.loop = asyncio.get_running_loop()
        try:
            self.port = await self._listen(self.port)
            for origin, wanted in self.origins.items():
                self.origins[origin] = port = await self._listen(wanted)
                for host in ("127.0.0.1", "localhost"):
                    self.bases[f"http://{host}:{port}"] = origin
        except OSError:
            for server in self._servers:
                server.close()
            raise
        return self

    async def _listen(self, port: int) -> int:
        server = await self.loop.create_server(self._connection, "127.0.0.1", port, backlog=1024)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def serve(self, listening: socket.socket) -> None:
        """Serve one more socket, as one that listens in another network namespace."""
        self._servers.append(await self.loop.create_server(self._connection, sock=listening))

    def _connection(self) -> Connection:
        return Connection(self, next(self._numbers))

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
            async with asyncio.timeout(_CLOSING):
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
