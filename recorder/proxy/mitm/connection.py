"""An agent's connection: passes upstream failures through unchanged.

If a server does not answer, mitmproxy sends the agent an error page of its own (502), and if the
server sent a reset, a FIN. No server ever behaved that way.
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
from types import TracebackType
from typing import Literal

from mitmproxy import connection, http
from mitmproxy.net.http.url import hostport
from mitmproxy.proxy import commands, events, layer, mode_specs, server
from mitmproxy.proxy.layers import modes, tcp, tls
from mitmproxy.proxy.layers.http import HttpStream, _hooks
from mitmproxy.tls import TlsData
from msgspec import Struct

from recorder.proxy.corporate_proxy import (
    ProxyRefusedError,
    UpstreamProxy,
    connect_through_proxy,
    explain_proxy_login,
)
from recorder.proxy.errors import (
    STREAM_RESET,
    classify_mitm_error,
    is_reset_error,
    to_connection_error,
)
from recorder.proxy.mitm import websocket
from recorder.proxy.mitm.flows import MitmFlows
from recorder.proxy.mitm.layers import OPTIONS, LayerStack, UnreachedHook, choose_next_layer
from recorder.proxy.mitm.tls import ProxyTls
from recorder.proxy.route import LOOPBACK_NAMES, Origin, UpstreamRoute, split_origin
from recorder.proxy.tls import ClientHello
from traces.model import find_header

PROXY_MODE = mode_specs.ProxyMode.parse("regular")
# mitmproxy opens at most 5 simultaneous connections per address; agents are not so limited.
MAX_CONNECTIONS = 1000


class ProxyContext(Struct, frozen=True, kw_only=True):
    """The settings and state that all connections of one proxy share."""

    tls: ProxyTls
    route: UpstreamRoute
    origins: Mapping[int, Origin]
    """Local ports, each with the scheme, host and port of the origin it represents."""
    refusals: dict[str, str]
    """Per upstream proxy: why its login failed, and what to do."""
    mistrusted: dict[str, str]
    """Per host: the reason the agent aborted the TLS handshake with the proxy."""
    fail: Callable[[BaseException], None]
    """Receives an internal exception; it must stop the run."""


class MitmConnection(server.LiveConnectionHandler):
    """Serves one connection of the agent until it ends."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        wiring: ProxyContext,
        flows: MitmFlows,
    ) -> None:
        super().__init__(reader, writer, OPTIONS, PROXY_MODE)
        self.max_conns = defaultdict(lambda: asyncio.Semaphore(MAX_CONNECTIONS))
        self.wiring = wiring
        self.flows = flows
        self._readers: dict[connection.Connection, asyncio.StreamReader] = {self.client: reader}
        self._tls_errors: dict[str, str] = {}
        self._refused: dict[str, ProxyRefusedError] = {}
        self._absolute: dict[tuple[str, int], UpstreamProxy] = {}
        """Servers whose requests go to an upstream proxy unchanged, not through a tunnel."""
        self._tunnels: set[connection.Connection] = set()
        self._source: connection.Connection | None = None
        self._hooks: dict[type[commands.StartHook], Callable[..., None]] = {
            layer.NextLayerHook: choose_next_layer,
            tls.TlsStartClientHook: wiring.tls.start_agent_tls,
            tls.TlsStartServerHook: wiring.tls.start_server_tls,
            tls.TlsFailedClientHook: self._note_mistrust,
            tls.TlsFailedServerHook: self._note_server_tls_error,
            tcp.TcpStartHook: lambda flow: self._tunnels.add(flow.server_conn),
            tcp.TcpMessageHook: lambda flow: flow.messages.clear(),
            _hooks.HttpRequestHook: self._on_request,
            UnreachedHook: self._on_unreached,
            _hooks.HttpResponseHeadersHook: self._on_response_head,
            _hooks.HttpResponseHook: self._on_response,
            _hooks.HttpErrorHook: self._on_error,
            websocket.SwitchedHook: self._on_websocket_switch,
            websocket.ResetHook: lambda flow: self._reset_agent(),
        }
        self._context = self.layer.context
        self._set_top_layer(modes.HttpProxy(self._context))

    def _set_top_layer(self, top: layer.Layer) -> None:
        layers = LayerStack(top, self._note_event_source, self._run_hook)
        self.layer = layers  # type: ignore[assignment]  # only handle_event is used

    def enter_tunnel(self, authority: str, hello: ClientHello | None) -> None:
        """Begin inside a tunnel to a server; with `hello`, also inside the agent's TLS."""
        scheme = "https" if hello else "http"
        _, host, port = split_origin(f"{scheme}://{authority}")
        context = self._context
        context.layers.clear()
        context.server.address = (host, port)
        if hello is not None:
            context.client.tls = context.server.tls = True
            context.client.timestamp_tls_setup = time.time()
            context.client.sni = hello.sni
            context.client.alpn = b"http/1.1" if hello.alpn else None
        self._set_top_layer(layer.NextLayer(context))

    def _note_event_source(self, event: events.Event) -> None:
        if isinstance(event, events.ConnectionEvent):
            self._source = event.connection
        elif isinstance(event, events.OpenConnectionCompleted):
            self._source = event.command.connection
        if isinstance(event, events.ConnectionClosed):
            self._reset_broken_tunnel(event.connection)

    def _run_hook(self, hook: commands.StartHook) -> None:
        if isinstance(hook, _hooks.HttpRequestHeadersHook):
            # Only the layer that waits for the hook knows the stream's number.
            stream = hook.blocking if hook.flow.request.is_http2 else None
            self.flows.begin_request(
                hook.flow, stream.stream_id if isinstance(stream, HttpStream) else 0
            )
            self._address_origin(hook.flow.request)
        elif run := self._hooks.get(type(hook)):
            run(*hook.args())

    def _address_origin(self, request: http.Request) -> None:
        """Rewrite a request to a port that represents an origin to address that origin."""
        origin = self.wiring.origins.get(request.port)
        if origin is not None and request.host in LOOPBACK_NAMES:
            request.data.scheme, request.data.host, request.data.port = (
                origin[0].encode(),
                *origin[1:],
            )
            request.headers["Host"] = hostport(*origin)

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Ignore hooks about connections; none is needed."""

    async def open_connection(self, command: commands.OpenConnection) -> None:
        """Connect to a server at its actual address, and read from it until it ends."""
        upstream = command.connection
        assert isinstance(upstream, connection.Server)
        try:
            reader, writer = await self._dial(upstream)
        except OSError as error:
            message = to_connection_error(error)
            if isinstance(error, ProxyRefusedError):
                self._refused[message] = error
            await self.server_event(events.OpenConnectionCompleted(command, message))
            return
        except asyncio.CancelledError:
            await self.server_event(events.OpenConnectionCompleted(command, "cancelled"))
            raise
        upstream.timestamp_start = time.time()  # otherwise a tunnel would dial again
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
            upstream.error = None  # it concerned what was sent here; another may be dialled
            if writer.get_extra_info("sslcontext") is not None:
                # close() would wait for the proxy's close_notify, beyond the end of this
                # connection.
                writer.transport.abort()

    async def _dial(
        self, upstream: connection.Server
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        assert upstream.address is not None
        name, port = upstream.address[:2]
        host, port = self.wiring.route.find_address(name, port)
        if port == self.client.sockname[1] and host in LOOPBACK_NAMES:
            raise ConnectionRefusedError("this is the proxy itself")
        absolute = self._absolute.get(upstream.address[:2])
        upstream_proxy = absolute or self.wiring.route.find_proxy(
            "https" if upstream.tls else "http", *upstream.address[:2]
        )
        if upstream_proxy is None:
            return await asyncio.open_connection(host, port)
        return await connect_through_proxy(
            upstream_proxy, host, port, self.wiring.tls.trust, tunnel=absolute is None
        )

    def hang_up(self) -> None:
        """The agent's connection is lost: end everything that depends on it."""
        io = self.transports.get(self.client)
        if io is not None and io.handler is not None:
            io.handler.cancel("the agent's connection is lost")

    def log(
        self,
        message: str,
        level: int = logging.INFO,
        exc_info: Literal[True]
        | tuple[type[BaseException], BaseException, TracebackType | None]
        | None = None,
    ) -> None:
        """Log only exceptions: mitmproxy catches those of its layers and of the taps."""
        error = sys.exception() if exc_info is True else exc_info and exc_info[1]
        if error is not None:
            self.wiring.fail(error)

    def _note_mistrust(self, data: TlsData) -> None:
        host = data.conn.sni or str((data.context.server.address or ("?",))[0])
        self.wiring.mistrusted[host] = data.conn.error or "unknown"

    def _note_server_tls_error(self, data: TlsData) -> None:
        message, data.conn.error = (
            data.conn.error or "unknown",
            None,
        )  # an error forbids new attempts
        code = self._get_error_code(data.conn)
        if code is None and "closed" not in message:
            self._tls_errors[message] = f"tls: {message}"
        else:
            self._tls_errors[message] = f"{code or 'eof'}: in the TLS handshake"

    def _on_request(self, flow: http.HTTPFlow) -> None:
        if not self.flows.complete_request(flow):
            self._fail_exchange(flow, "")
        elif flow.response is None and flow.request.scheme == "http":
            self._address_proxy(flow.request)

    def _address_proxy(self, request: http.Request) -> None:
        """Send an unencrypted request with its absolute URL; many proxies tunnel only TLS."""
        upstream_proxy = self.wiring.route.find_proxy("http", request.host, request.port)
        if upstream_proxy is None or "upgrade" in request.headers:
            return
        self._absolute[request.host, request.port] = upstream_proxy
        request.authority = hostport("http", request.host, request.port)
        if upstream_proxy.login:
            request.headers["Proxy-Authorization"] = upstream_proxy.login

    def _on_response_head(self, flow: http.HTTPFlow) -> None:
        upstream_proxy = self._absolute.get((flow.request.host, flow.request.port))
        if (
            upstream_proxy is not None
            and flow.response is not None
            and flow.response.status_code == 407
        ):
            self.wiring.refusals[upstream_proxy.public_url] = explain_proxy_login(
                upstream_proxy, flow.response.headers.get("proxy-authenticate")
            )
        self.flows.begin_response(flow)

    def _on_unreached(self, flow: http.HTTPFlow, said: str) -> None:
        """Pass an upstream proxy's refusal to the agent as the response."""
        if refused := self._refused.get(said):
            if refused.answer.status == 407:
                challenge = find_header(refused.answer.headers, "proxy-authenticate")
                self.wiring.refusals[refused.outer.public_url] = explain_proxy_login(
                    refused.outer, challenge
                )
            self.flows.pass_on_refusal(flow, refused.answer, said)

    def _on_response(self, flow: http.HTTPFlow) -> None:
        if (
            flow.websocket
            and flow.response
            and websocket.parse_websocket_extensions(flow.response) is None
        ):
            flow.websocket = None  # relayed byte for byte, like any unsupported protocol
        if not self.flows.complete_response(flow):
            self._fail_exchange(flow, "")

    def _on_websocket_switch(self, flow: http.HTTPFlow, layer: websocket.WebSocketRelay) -> None:
        layer.attach_exchanges(self.flows.switch_to_websocket(flow), self._get_error_code)

    def _on_error(self, flow: http.HTTPFlow) -> None:
        message = flow.error.msg if flow.error else ""
        self._fail_exchange(flow, self._explain_error(flow, message))

    def _fail_exchange(self, flow: http.HTTPFlow, error: str) -> None:
        """Show the agent the server's failure unchanged, not mitmproxy's own error page."""
        reason = self.flows.break_off_exchange(flow, error)
        if reason is None:
            return
        if _is_connection_reset(reason) and not (flow.request.is_http2 and self.flows.open_count):
            self._reset_agent()
        if flow.killable:
            flow.kill()  # type: ignore[no-untyped-call]

    def _explain_error(self, flow: http.HTTPFlow, said: str) -> str:
        agent_left = not self.client.connected or self._source is self.client
        if agent_left:
            return f"cancelled: {self._get_error_code(self.client) or 'eof'} by the agent"
        if said in self._tls_errors:
            return self._tls_errors[said]
        if flow.server_conn.error:
            return flow.server_conn.error
        return classify_mitm_error(said, broken=self._get_error_code(flow.server_conn))

    def _get_error_code(self, conn: connection.Connection) -> str | None:
        """Return the code of the error that ended a connection; None without an error."""
        reader = self._readers.get(conn)
        error = reader and reader.exception()
        return to_connection_error(error).partition(":")[0] if isinstance(error, OSError) else None

    def _reset_broken_tunnel(self, conn: connection.Connection) -> None:
        """Reset a tunnel (CONNECT, or an unsupported upgrade) if the server reset it."""
        if conn in self._tunnels and self._get_error_code(conn):
            self._reset_agent()

    def _reset_agent(self) -> None:
        """End the agent's connection with a TCP reset, not with the FIN that mitmproxy would send.

        A socket with SO_LINGER 0 sends RST when it is closed. uvloop's socket objects cannot set
        options, so it is set through a second descriptor of the same socket; and abort() closes
        a transport at once, whereas close() would first send the remaining data.
        """
        io = self.transports.get(self.client)
        if io is None or not isinstance(io.writer, asyncio.StreamWriter) or io.writer.is_closing():
            return
        number = io.writer.get_extra_info("socket").fileno()
        with socket.socket(fileno=os.dup(number)) as duplicate:
            duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        io.writer.transport.abort()


def _is_connection_reset(reason: str) -> bool:
    """Return whether the entire connection is reset; in HTTP/2 it may be only one stream."""
    return is_reset_error(reason) and not reason.startswith(STREAM_RESET)
