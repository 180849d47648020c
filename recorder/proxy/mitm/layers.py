"""mitmproxy's protocol layers, driven without its server and addons.

mitmproxy's own server runs a list of addons in a separate task for each of some ten hooks per
request, stores its options in a module global (one proxy per process), and writes each piece of a
message separately. Here hooks run inline, and consecutive pieces for the same connection are
written together, as a server writes them. The cost is the use of mitmproxy names that are not
guaranteed to be stable; its version is pinned.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

from h2 import events as h2_events
from h11 import Data, EndOfMessage
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from hyperframe.frame import Frame, GoAwayFrame
from mitmproxy import http
from mitmproxy.connection import ConnectionState
from mitmproxy.net.tls import starts_like_tls_record
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events, layer, tunnel
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import HttpLayer, tcp, tls
from mitmproxy.proxy.layers import http as layers_http
from mitmproxy.proxy.layers.http import HTTPMode, HttpStream, _http1, _http2
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestProtocolError,
    ResponseEndOfMessage,
    ResponseProtocolError,
    ResponseTrailers,
)
from mitmproxy.proxy.layers.http._hooks import HttpResponseHook
from OpenSSL import SSL

from recorder.proxy.mitm.tls import ALPN_PROTOCOLS

# The options that the layers read; reading another raises AttributeError, which stops the run.
OPTIONS = cast(
    Options,
    SimpleNamespace(
        connection_strategy="lazy",  # nothing is dialled before a request is complete
        validate_inbound_headers=True,
        normalize_outbound_headers=True,
        store_streamed_bodies=False,
        stream_large_bodies=None,
        body_size_limit=None,
        keep_host_header=False,
        http2_ping_keepalive=58,
        websocket=True,
        rawtcp=True,
        # Seconds. A model may think for longer than the 600 after which mitmproxy hangs up.
        tcp_timeout=86_400,
    ),
)
_LAST_CHUNK = b"0\r\n\r\n"
_INTERIM_HEAD = re.compile(rb"HTTP/1\.\d 1(?!01)\d\d[ \r]")
"""A head before the final one: 100 or 103 (RFC 9110 15.2), but not the 101 of an upgrade."""
_TLS_ALERT = re.compile(r"TLS Error: .*'([^']*)'\)\]")
"""mitmproxy's report of an error of an open TLS connection; the last name is OpenSSL's reason."""
JOINED_BYTES = 1 << 16
"""Maximum bytes of joined pieces; beyond this, copying costs more than another write."""


class _TrailerChunkedReader(ChunkedReader):
    """Stores trailers; mitmproxy raises NotImplementedError on them, which would end a run."""

    trailers: http.Headers | None = None

    def __call__(self, buffer: ReceiveBuffer) -> Data | EndOfMessage | None:
        event = super().__call__(buffer)
        if not isinstance(event, EndOfMessage):
            return event
        if event.headers:
            self.trailers = http.Headers(event.headers.raw_items())
        return EndOfMessage()


class _TrailerHttp1Server(_http1.Http1Server):
    """The agent's side of HTTP/1.1, with support for sending trailers."""

    _trailers: http.Headers | None = None

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        if isinstance(event, ResponseTrailers):
            self._trailers = event.trailers
            return
        trailers, self._trailers = self._trailers, None
        for command in super().send(event):
            if trailers and isinstance(command, commands.SendData) and command.data == _LAST_CHUNK:
                command.data = b"0\r\n%b\r\n" % bytes(trailers)
            yield command


class _TrailerHttp1Client(_http1.Http1Client):
    """The server's side of HTTP/1.1, with trailers and interim (1xx) responses."""

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        while self.request and _INTERIM_HEAD.match(self.buf._data):
            if (head := self.buf.maybe_extract_lines()) is None:
                return
            if not self.request.is_http2:
                yield commands.SendData(self.context.client, b"\r\n".join((*head, b"", b"")))
        yield from super().read_headers(event)

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        for command in super().read_body(event):
            is_end = isinstance(command, ReceiveHttp) and isinstance(
                command.event, ResponseEndOfMessage
            )
            if (
                is_end
                and isinstance(self.body_reader, _TrailerChunkedReader)
                and self.body_reader.trailers
            ):
                assert self.stream_id is not None
                yield ReceiveHttp(ResponseTrailers(self.stream_id, self.body_reader.trailers))
            yield command


class DrainingHttp2Client(_http2.Http2Client):
    """The server's side of HTTP/2: what a server took before its GOAWAY, it finishes.

    RFC 9113 6.8: streams above the last number of the GOAWAY were not processed; those up to it go
    on, on this connection, and new requests need another one. h2 would end all of them.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._draining = False
        self.h2_conn._frame_dispatch_table[GoAwayFrame] = _receive_goaway

    def handle_h2_event(self, event: h2_events.Event) -> layer.CommandGenerator[bool]:
        if isinstance(event, h2_events.ConnectionTerminated):
            yield from self._drain(event.last_stream_id or 0)
        elif (yield from super().handle_h2_event(event)):
            return True
        if self._draining and not self.streams:
            yield from self.close_connection("HTTP/2 connection closed")
            return True
        return False

    def _drain(self, last: int) -> layer.CommandGenerator[None]:
        """Let the streams up to `last` go on, and no new one begin."""
        self._draining = True
        self.conn.state &= ~ConnectionState.CAN_WRITE  # mitmproxy reuses only open connections
        unsent = {-number: theirs for number, theirs in enumerate(self.stream_queue, 1)}
        self.their_stream_id.update(unsent)
        self.stream_queue.clear()
        for number in (*(each for each in self.streams if each > last), *unsent):
            self.streams.pop(number, None)
            message = "stream reset by client (REFUSED_STREAM)"
            code = ResponseProtocolError.code
            yield ReceiveHttp(ResponseProtocolError(number, message, code))


def _receive_goaway(frame: GoAwayFrame) -> tuple[list[Frame], list[h2_events.Event]]:
    """Report a GOAWAY, and leave the connection as it is."""
    event = h2_events.ConnectionTerminated()
    event.last_stream_id = frame.last_stream_id
    return [], [event]


class EndingServerTls(tls.ServerTLSLayer):
    """TLS to a server, every end of which reaches the requests that wait for an answer.

    mitmproxy loses two: OpenSSL counts a fatal alert as a shutdown, so mitmproxy takes the end of
    the connection after it for one that it passed on; and what comes with the last message of the
    handshake is passed on before anybody knows the connection. In TLS 1.3 a server refuses a
    client's certificate only after that message (RFC 8446 4.4.2.4).
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._early: list[events.Event] = []
        self._end_passed_on = False

    def event_to_child(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, events.DataReceived | events.ConnectionClosed) and (
            event.connection is self.conn
        ):
            if self.tunnel_state is tunnel.TunnelState.ESTABLISHING:
                self._early.append(event)
                return
            self._end_passed_on |= isinstance(event, events.ConnectionClosed)
        yield from super().event_to_child(event)

    def _handshake_finished(self, err: str | None) -> layer.CommandGenerator[None]:
        yield from super()._handshake_finished(err)
        early, self._early = self._early, []
        for event in early:
            yield from self.event_to_child(event)

    def receive_data(self, data: bytes) -> layer.CommandGenerator[None]:
        for command in super().receive_data(data):
            if isinstance(command, commands.Log) and (
                alert := _TLS_ALERT.fullmatch(command.message)
            ):
                self.conn.error = f"tls: {alert[1]}"
            yield command

    def receive_close(self) -> layer.CommandGenerator[None]:
        if not self._end_passed_on:
            yield from tunnel.TunnelLayer.receive_close(self)

    def send_data(self, data: bytes) -> layer.CommandGenerator[None]:
        try:
            yield from super().send_data(data)
        except SSL.Error:  # after a fatal alert; the end follows
            yield from self.tls_interact()


def _skip_field_checks(_: http.MessageData) -> None:
    """Replace a check that mitmproxy omits under `python -O`.

    It compares the type of each field of each head with its declaration, a twelfth of the cost of a
    request here; the fields come from mitmproxy's parser or from code that mypy has checked.
    """


_http1.ChunkedReader = _TrailerChunkedReader  # type: ignore[attr-defined]
layers_http.Http1Server = _TrailerHttp1Server  # type: ignore[attr-defined]
layers_http.Http1Client = _TrailerHttp1Client  # type: ignore[attr-defined]
layers_http.Http2Client = DrainingHttp2Client  # type: ignore[attr-defined]
tls.ServerTLSLayer = EndingServerTls  # type: ignore[misc, assignment]
http.MessageData.__post_init__ = _skip_field_checks  # type: ignore[method-assign]


@dataclass
class UnreachedHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """The server of a flow is unreachable; the hook may set a response on the flow."""

    flow: http.HTTPFlow
    why: str


class _FallbackHttpStream(HttpStream):
    """A request whose server is unreachable may still get a response: an upstream proxy's."""

    def handle_protocol_error(
        self, event: RequestProtocolError | ResponseProtocolError
    ) -> layer.CommandGenerator[None]:
        if isinstance(event, ResponseProtocolError) and event.code is ErrorCode.CONNECT_FAILED:
            yield UnreachedHook(self.flow, event.message)
            if self.flow.response is not None:
                yield from self.send_response()
                return
        yield from super().handle_protocol_error(event)


class RecorderHttpLayer(HttpLayer):
    """mitmproxy's layer, with the stream class above."""

    def make_stream(self, stream_id: int) -> layer.CommandGenerator[None]:
        stream = self.streams[stream_id] = _FallbackHttpStream(self.context.fork(), stream_id)
        yield from self.event_to_child(stream, events.Start())


class LayerStack:
    """The stack of layers of one connection, with `top` as its uppermost.

    `seen` receives every event before the layers do; `run` runs every hook.
    """

    def __init__(
        self,
        top: layer.Layer,
        seen: Callable[[events.Event], None],
        run: Callable[[commands.StartHook], None],
    ) -> None:
        self.top, self.seen, self.run = top, seen, run

    def handle_event(self, event: events.Event) -> Iterator[commands.Command]:
        """Yield the commands (send, open, close) that result from an event."""
        self.seen(event)
        send: commands.SendData | None = None
        for command in self._iter_commands(event):
            if isinstance(command, commands.SendData):
                if send is None:
                    send = command
                elif (
                    send.connection is command.connection
                    and len(send.data) + len(command.data) <= JOINED_BYTES
                ):
                    send.data += command.data
                else:
                    yield send
                    send = command
                continue
            if isinstance(command, HttpResponseHook):
                self.run(command)  # first: an end is recorded before its last bytes are sent
                continue
            if send is not None:
                yield send
                send = None
            if isinstance(command, commands.StartHook):
                self.run(command)
            else:
                yield command
        if send is not None:
            yield send

    def _iter_commands(self, event: events.Event) -> Iterator[commands.Command]:
        """Yield all commands that result from an event, except logs.

        The completion of a blocking hook waits until the layers are idle, as if a task sent it.
        """
        waiting = deque([event])
        while waiting:
            for command in self.top.handle_event(waiting.popleft()):
                if not isinstance(command, commands.Log):
                    yield command
                if isinstance(command, commands.StartHook) and command.blocking:
                    waiting.append(events.HookCompleted(command))


def choose_next_layer(data: layer.NextLayer) -> None:
    """Choose a layer by the agent's first bytes: TLS, HTTP, or anything else."""
    context, data_start = data.context, bytes(data.data_client())  # type: ignore[no-untyped-call]
    if len(context.layers) == 1:
        data.layer = RecorderHttpLayer(context, HTTPMode.regular)
    elif starts_like_tls_record(data_start):
        to_server = tls.ServerTLSLayer(context)
        to_server.child_layer = tls.ClientTLSLayer(context)
        data.layer = to_server
    elif context.client.alpn in ALPN_PROTOCOLS or re.match(rb"[A-Za-z]+ [^\n]", data_start):
        data.layer = RecorderHttpLayer(context, HTTPMode.transparent)
    elif not re.fullmatch(
        rb"\x16|\x16\x03|[A-Za-z]{,20} ?", data_start
    ):  # may still become one of these
        data.layer = tcp.TCPLayer(context)
