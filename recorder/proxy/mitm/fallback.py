"""Let mitmproxy serve a connection of the own server that is not HTTP/1.1.

That is HTTP/2, an upgrade (WebSocket), odd TLS, or a tunnel with another protocol.
mitmproxy is loaded for the first such connection. It reads and writes through the agent's
connection, which keeps its TCP connection and, if TLS has begun, its TLS.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from recorder.proxy.connection import AgentConnection
from recorder.proxy.response_writer import AgentGoneError
from recorder.proxy.route import Origin, UpstreamRoute
from traces.taps import TapChain

if TYPE_CHECKING:
    from recorder.proxy.mitm.connection import MitmConnection, ProxyContext


class _PlainTransport(asyncio.Transport):
    """The plaintext of an agent's connection as a transport of asyncio's streams."""

    def __init__(self, line: AgentConnection) -> None:
        super().__init__()
        self._line = line

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._line.transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._line.is_closed

    def write(self, data: bytes | bytearray | memoryview) -> None:
        with suppress(AgentGoneError):  # as for any transport whose connection is lost
            self._line.write(bytes(data))

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        self._line.close()

    def abort(self) -> None:
        self._line.transport.abort()

    def pause_reading(self) -> None:
        self._line.transport.pause_reading()

    def resume_reading(self) -> None:
        self._line.transport.resume_reading()


@dataclass(frozen=True, kw_only=True)
class MitmFallback:
    """What mitmproxy's connections share with those of the own server."""

    confdir: Path
    route: UpstreamRoute
    taps: TapChain
    clock: Callable[[], float]
    seqs: Iterator[int]
    origins: Mapping[int, Origin]
    refusals: dict[str, str]
    untrusted: dict[str, str]
    fail: Callable[[BaseException], None]

    @cached_property
    def _context(self) -> "ProxyContext":
        from recorder.proxy.mitm.connection import ProxyContext
        from recorder.proxy.mitm.tls import ProxyTls

        return ProxyContext(
            tls=ProxyTls(self.confdir, self.route),
            route=self.route,
            origins=self.origins,
            refusals=self.refusals,
            mistrusted=self.untrusted,
            fail=self.fail,
        )

    def serve(self, line: AgentConnection, authority: str, *, decrypted: bool) -> "MitmSession":
        """Serve a connection; the session has to get its events.

        `authority` is that of the CONNECT, if there was one; `decrypted` tells whether the bytes
        are the plaintext of TLS.
        """
        from recorder.proxy.mitm.connection import MitmConnection
        from recorder.proxy.mitm.flows import MitmFlows

        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport = _PlainTransport(line)
        protocol.connection_made(transport)
        if line.paused:
            protocol.pause_writing()
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        flows = MitmFlows(self.taps, self.clock, self.seqs, line.number)
        connection = MitmConnection(reader, writer, self._context, flows)
        if authority:
            connection.enter_tunnel(authority, line.hello if decrypted else None)
        task = asyncio.Task(connection.handle_client(), loop=loop, eager_start=True)
        return MitmSession(protocol, connection, task)


class MitmSession(Struct, frozen=True):
    """A connection that mitmproxy serves, until the task is done."""

    protocol: asyncio.StreamReaderProtocol
    connection: "MitmConnection"
    task: asyncio.Task[None]

    def lose_connection(self, error: Exception | None) -> None:
        """Handle the end of the TCP connection."""
        self.protocol.connection_lost(error)
        self.connection.hang_up()
