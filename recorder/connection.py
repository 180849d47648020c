"""One connection of the agent: what goes wrong with a server goes wrong with the agent alike.

mitmproxy shows an agent a page of its own (502) where a server did not answer, and a FIN where
the server sent a reset. Both would be behaviour that no server ever had.
"""

import asyncio
import logging
import os
import socket
import struct
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Literal
from urllib.parse import urlsplit

from mitmproxy import connection, http
from mitmproxy.net.http.url import hostport
from mitmproxy.proxy import commands, events, layer, mode_specs, server
from mitmproxy.proxy.layers import modes, tcp, tls
from mitmproxy.proxy.layers.http import HttpStream, _hooks
from mitmproxy.tls import TlsData

from recorder import websocket
from recorder.causes import STREAM_RESET, code_of, resets, why
from recorder.flows import Flows
from recorder.layers import OPTIONS, Layers, UnreachedHook, next_layer
from recorder.outer import PORTS, Outer, Refused, WayOut, hint, reach
from recorder.tls import Tls
from traces.model import header

LOOPBACK = ("127.0.0.1", "::1")
MODE = mode_specs.ProxyMode.parse("regular")
# mitmproxy opens at most 5 connections at a time to one address; agents are not so limited.
MANY = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What all connections of one proxy share."""

    tls: Tls
    hosts: Mapping[str, tuple[str, int]]
    origins: Mapping[int, tuple[str, str, int]]
    """Ports of ours and the scheme, host and port for which each stands."""
    inner: bool
    way: WayOut
    refusals: dict[str, str]
    """Name of an outer proxy to what became of the login there, and what to do."""
    mistrusted: dict[str, str]
    """Host to the reason for which the agent broke off the TLS handshake with us."""
    fail: Callable[[BaseException], None]
    """Told of a fault of ours; it must stop the run."""


class AgentConnection(server.LiveConnectionHandler):
    """Serves one connection of the agent until it ends."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        wiring: Wiring,
        flows: Flows,
    ) -> None:
        super().__init__(reader, writer, OPTIONS, MODE)
        self.max_conns = defaultdict(lambda: asyncio.Semaphore(MANY))
        self.wiring = wiring
        self.flows = flows
        self._readers: dict[connection.Connection, asyncio.StreamReader] = {self.client: reader}
        self._tls_errors: dict[str, str] = {}
        self._refused: dict[str, Refused] = {}
        self._absolute: dict[tuple[str, int], Outer] = {}
        """Servers for which requests go to a proxy as they are, not into a tunnel."""
        self._tunnels: set[connection.Connection] = set()
        self._source: connection.Connection | None = None
        self._hooks: dict[type[commands.StartHook], Callable[..., None]] = {
            layer.NextLayerHook: next_layer,
            tls.TlsStartClientHook: wiring.tls.meet_agent,
            tls.TlsStartServerHook: wiring.tls.meet_server,
            tls.TlsFailedClientHook: self._mistrusted,
            tls.TlsFailedServerHook: self._server_tls_failed,
            tcp.TcpStartHook: lambda flow: self._tunnels.add(flow.server_conn),
            tcp.TcpMessageHook: lambda flow: flow.messages.clear(),
            _hooks.HttpRequestHook: self._request,
            UnreachedHook: self._unreached,
            _hooks.HttpResponseHeadersHook: self._answering,
            _hooks.HttpResponseHook: self._response,
            _hooks.HttpErrorHook: self._error,
            websocket.SwitchedHook: self._switched,
            websocket.ResetHook: lambda flow: self._reset(),
        }
        layers = Layers(modes.HttpProxy(self.layer.context), self._seen, self._run)
        self.layer = layers  # type: ignore[assignment]  # asked for nothing but handle_event

    def _seen(self, event: events.Event) -> None:
        if isinstance(event, events.ConnectionEvent):
            self._source = event.connection
        elif isinstance(event, events.OpenConnectionCompleted):
            self._source = event.command.connection
        if isinstance(event, events.ConnectionClosed):
            self._cut_tunnel(event.connection)

    def _run(self, hook: commands.StartHook) -> None:
        if isinstance(hook, _hooks.HttpRequestHeadersHook):
            # The layer that waits for the hook is the only one to know the number of the stream.
            stream = hook.blocking if hook.flow.request.is_http2 else None
            self.flows.begin(hook.flow, stream.stream_id if isinstance(stream, HttpStream) else 0)
            self._ask_the_origin(hook.flow.request)
        elif run := self._hooks.get(type(hook)):
            run(*hook.args())

    def _ask_the_origin(self, request: http.Request) -> None:
        """A request to a port that stands for an origin, by way of a proxy or not, is one to it."""
        origin = self.wiring.origins.get(request.port)
        if origin is not None and request.host in (*LOOPBACK, "localhost"):
            request.data.scheme, request.data.host, request.data.port = (
                origin[0].encode(),
                *origin[1:],
            )
            request.headers["Host"] = hostport(*origin)

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Hooks about connections, of which we need none."""

    async def open_connection(self, command: commands.OpenConnection) -> None:
        """Dial a server, wherever it really is, and read from it until it ends."""
        upstream = command.connection
        assert isinstance(upstream, connection.Server)
        try:
            reader, writer = await self._dial(upstream)
        except OSError as error:
            said = code_of(error)
            if isinstance(error, Refused):
                self._refused[said] = error
            await self.server_event(events.OpenConnectionCompleted(command, said))
            return
        except asyncio.CancelledError:
            await self.server_event(events.OpenConnectionCompleted(command, "cancelled"))
            raise
        upstream.timestamp_start = time.time()  # or a tunnel would dial again
        upstream.state = connection.ConnectionState.OPEN
        upstream.peername = writer.get_extra_info("peername")
        upstream.sockname = writer.get_extra_info("sockname")
        self._readers[upstream] = reader
        task = asyncio.current_task()
        self.transports[upstream] = server.ConnectionIO(handler=task, reader=reader, writer=writer)
        await self.server_event(events.OpenConnectionCompleted(command, None))
        try:
            await self.handle_connection(upstream)
        finally:
            del self._readers[upstream]
            if writer.get_extra_info("sslcontext") is not None:
                # Closed, it would wait for the proxy's close_notify, past our own end.
                writer.transport.abort()

    async def _dial(
        self, upstream: connection.Server
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        assert upstream.address is not None
        name, port = upstream.address[:2]
        host, port = self.wiring.hosts.get(name, (name, port))
        if port == self.client.sockname[1] and host in ("localhost", "127.0.0.1"):
            raise ConnectionRefusedError("this is the proxy itself")
        absolute = self._absolute.get(upstream.address[:2])
        outer = absolute or self._outer("https" if upstream.tls else "http", upstream.address[:2])
        if outer is None:
            return await asyncio.open_connection(host, port)
        return await reach(outer, host, port, self.wiring.tls.trust, tunnel=absolute is None)

    def _outer(self, scheme: str, address: tuple[str, int]) -> Outer | None:
        """The proxy to a server; None where it, or where it really is, is dialled directly."""
        really = self.wiring.hosts.get(address[0], address)
        way = self.wiring.way
        return way.proxy(scheme, *address) and way.proxy(scheme, *really)

    def hang_up(self, *, reset: bool) -> None:
        """End the connection and everything that hangs on it."""
        if reset:
            self._reset()
        io = self.transports.get(self.client)
        if io is not None and io.handler is not None:
            io.handler.cancel("the proxy closes")

    def log(
        self,
        message: str,
        level: int = logging.INFO,
        exc_info: Literal[True]
        | tuple[type[BaseException], BaseException, TracebackType | None]
        | None = None,
    ) -> None:
        """Silent, but for an exception: mitmproxy catches those of its layers and of our taps."""
        error = sys.exception() if exc_info is True else exc_info and exc_info[1]
        if error is not None:
            self.wiring.fail(error)

    def _mistrusted(self, data: TlsData) -> None:
        host = data.conn.sni or str((data.context.server.address or ("?",))[0])
        self.wiring.mistrusted[host] = data.conn.error or "unknown"

    def _server_tls_failed(self, data: TlsData) -> None:
        said, data.conn.error = data.conn.error or "unknown", None  # an error forbids new attempts
        broken = self._broken(data.conn)
        if broken is None and "closed" not in said:
            self._tls_errors[said] = f"tls: {said}"
        else:
            self._tls_errors[said] = f"{broken or 'eof'}: in the TLS handshake"

    def _request(self, flow: http.HTTPFlow) -> None:
        if not self.flows.asked(flow):
            self._fail(flow, "")
        elif flow.response is None and flow.request.scheme == "http":
            self._address_proxy(flow.request)

    def _address_proxy(self, request: http.Request) -> None:
        """What is not encrypted is asked of a proxy by its whole URL; many tunnel TLS only."""
        outer = self._outer("http", (request.host, request.port))
        if outer is None or "upgrade" in request.headers:
            return
        self._absolute[request.host, request.port] = outer
        request.authority = hostport("http", request.host, request.port)
        if outer.login:
            request.headers["Proxy-Authorization"] = outer.login

    def _answering(self, flow: http.HTTPFlow) -> None:
        outer = self._absolute.get((flow.request.host, flow.request.port))
        if outer is not None and flow.response is not None and flow.response.status_code == 407:
            self.wiring.refusals[outer.name] = hint(
                outer, flow.response.headers.get("proxy-authenticate")
            )
        self.flows.answering(flow)

    def _unreached(self, flow: http.HTTPFlow, said: str) -> None:
        """A proxy that leads nowhere says why; the agent gets that, and not a silence of ours."""
        if refused := self._refused.get(said):
            if refused.answer.status == 407:
                wanted = header(refused.answer.headers, "proxy-authenticate")
                self.wiring.refusals[refused.outer.name] = hint(refused.outer, wanted)
            self.flows.refused(flow, refused.answer, said)

    def _response(self, flow: http.HTTPFlow) -> None:
        if flow.websocket and flow.response and websocket.extensions(flow.response) is None:
            flow.websocket = None  # it passes byte for byte, like any protocol we do not speak
        if not self.flows.answered(flow):
            self._fail(flow, "")

    def _switched(self, flow: http.HTTPFlow, layer: websocket.WebSocket) -> None:
        layer.begin(self.flows.switched(flow), self._broken)

    def _error(self, flow: http.HTTPFlow) -> None:
        said = flow.error.msg if flow.error else ""
        self._fail(flow, self._why(flow, said))

    def _fail(self, flow: http.HTTPFlow, error: str) -> None:
        """Let the agent see what it would see without us; mitmproxy's own page never goes out."""
        headless = flow.response is None
        reason = self.flows.broke(flow, error)
        if reason is None:
            return
        if self.wiring.inner and headless and not self.client.tls:
            self._tell(reason)
        elif _resets(reason) and not (flow.request.is_http2 and self.flows.open):
            self._reset()
        if flow.killable:
            flow.kill()  # type: ignore[no-untyped-call]

    def _why(self, flow: http.HTTPFlow, said: str) -> str:
        gone = not self.client.connected or self._source is self.client
        if gone:
            return f"cancelled: {self._broken(self.client) or 'eof'} by the agent"
        if said in self._tls_errors:
            return self._tls_errors[said]
        return why(said, broken=self._broken(flow.server_conn))

    def _broken(self, conn: connection.Connection) -> str | None:
        """The code of the error that ended a connection; None where it ended well or not yet."""
        reader = self._readers.get(conn)
        error = reader and reader.exception()
        return code_of(error).partition(":")[0] if isinstance(error, OSError) else None

    def _cut_tunnel(self, conn: connection.Connection) -> None:
        """A tunnel (a CONNECT or an upgrade to what we do not speak) is reset as the server did."""
        if conn in self._tunnels and self._broken(conn):
            self._reset()

    def _tell(self, reason: str) -> None:
        """An inner proxy says in a header why no answer came; only HTTP/1.1 in the clear."""
        writer = self.transports[self.client].writer
        assert isinstance(writer, asyncio.StreamWriter)
        said = reason.encode("ascii", "backslashreplace").replace(b"\r", b" ").replace(b"\n", b" ")
        writer.write(
            b"HTTP/1.1 502 Bad Gateway\r\nx-stumble-error: %s\r\n"
            b"content-length: 0\r\nconnection: close\r\n\r\n" % said
        )

    def _reset(self) -> None:
        """End the agent's connection by a TCP reset, not by the FIN that mitmproxy would send.

        A socket that lingers for 0 seconds sends RST when it is closed. uvloop's socket objects
        cannot set options, so it is set through a second descriptor of the same socket; and a
        transport that is aborted closes at once, where close() would first send what is left.
        """
        io = self.transports.get(self.client)
        if io is None or not isinstance(io.writer, asyncio.StreamWriter) or io.writer.is_closing():
            return
        number = io.writer.get_extra_info("socket").fileno()
        with socket.socket(fileno=os.dup(number)) as same:
            same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        io.writer.transport.abort()


def split(origin: str) -> tuple[str, str, int]:
    """Scheme, host and port of an origin."""
    parts = urlsplit(origin)
    return parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme]


def _resets(reason: str) -> bool:
    """Whether a whole connection would be reset; of HTTP/2 it may be one stream only."""
    return resets(reason) and not reason.startswith(STREAM_RESET)
