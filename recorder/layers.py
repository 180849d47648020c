"""mitmproxy's protocol layers, driven without its server and its addons.

mitmproxy's own server walks a list of addons in a task of its own for each of some ten hooks
per request, keeps its options in a module global (one proxy per process), and writes each piece
of a message by itself. Here hooks run in line and pieces that go the same way at the same time
are written together, as a server writes them. The price is the use of names that mitmproxy does
not promise to keep; its version is locked.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

from h11 import Data, EndOfMessage
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy import http
from mitmproxy.net.tls import starts_like_tls_record
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers import HttpLayer, tcp, tls
from mitmproxy.proxy.layers import http as layers_http
from mitmproxy.proxy.layers.http import HTTPMode, HttpStream, _http1
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestProtocolError,
    ResponseEndOfMessage,
    ResponseProtocolError,
    ResponseTrailers,
)

from recorder.tls import SPOKEN

# What the layers ask for; anything else would be an AttributeError, which stops the run.
OPTIONS = cast(
    Options,
    SimpleNamespace(
        connection_strategy="lazy",  # nothing is dialled before a request is whole
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
_LAST = b"0\r\n\r\n"
_INTERIM = re.compile(rb"HTTP/1\.\d 1(?!01)\d\d[ \r]")
"""A head before that of the answer: 100 or 103 (RFC 9110 15.2), and not the 101 of an upgrade."""
TOGETHER = 1 << 16
"""Bytes up to which pieces are joined; beyond, copying costs more than another write."""


class _Chunked(ChunkedReader):
    """Keeps trailers to itself; mitmproxy raises NotImplementedError on them, which ends a run."""

    trailers: http.Headers | None = None

    def __call__(self, buffer: ReceiveBuffer) -> Data | EndOfMessage | None:
        event = super().__call__(buffer)
        if not isinstance(event, EndOfMessage):
            return event
        if event.headers:
            self.trailers = http.Headers(event.headers.raw_items())
        return EndOfMessage()


class _Server(_http1.Http1Server):
    """The agent's side of HTTP/1.1, which can be sent trailers."""

    _trailers: http.Headers | None = None

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        if isinstance(event, ResponseTrailers):
            self._trailers = event.trailers
            return
        trailers, self._trailers = self._trailers, None
        for command in super().send(event):
            if trailers and isinstance(command, commands.SendData) and command.data == _LAST:
                command.data = b"0\r\n%b\r\n" % bytes(trailers)
            yield command


class _Client(_http1.Http1Client):
    """The server's side of HTTP/1.1, with trailers, and with what only announces an answer."""

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        while self.request and _INTERIM.match(self.buf._data):
            if (head := self.buf.maybe_extract_lines()) is None:
                return
            if not self.request.is_http2:
                yield commands.SendData(self.context.client, b"\r\n".join((*head, b"", b"")))
        yield from super().read_headers(event)

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        for command in super().read_body(event):
            whole = isinstance(command, ReceiveHttp) and isinstance(
                command.event, ResponseEndOfMessage
            )
            if whole and isinstance(self.body_reader, _Chunked) and self.body_reader.trailers:
                assert self.stream_id is not None
                yield ReceiveHttp(ResponseTrailers(self.stream_id, self.body_reader.trailers))
            yield command


def _trusted(_: http.MessageData) -> None:
    """Takes the place of a check that mitmproxy leaves out under `python -O`.

    It compares the type of each field of each head with what is declared, which is a twelfth of
    what a request costs here; the fields come from its own parser, or from ours, which mypy has
    checked.
    """


_http1.ChunkedReader = _Chunked  # type: ignore[attr-defined]
layers_http.Http1Server = _Server  # type: ignore[attr-defined]
layers_http.Http1Client = _Client  # type: ignore[attr-defined]
http.MessageData.__post_init__ = _trusted  # type: ignore[method-assign]


@dataclass
class UnreachedHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """There is no connection to the server of a flow; who runs it may give the flow an answer."""

    flow: http.HTTPFlow
    why: str


class _Stream(HttpStream):
    """A request whose server could not be reached may have an answer nevertheless: a proxy's."""

    def handle_protocol_error(
        self, event: RequestProtocolError | ResponseProtocolError
    ) -> layer.CommandGenerator[None]:
        if isinstance(event, ResponseProtocolError) and event.code is ErrorCode.CONNECT_FAILED:
            yield UnreachedHook(self.flow, event.message)
            if self.flow.response is not None:
                yield from self.send_response()
                return
        yield from super().handle_protocol_error(event)


class Http(HttpLayer):
    """mitmproxy's, with streams of ours."""

    def make_stream(self, stream_id: int) -> layer.CommandGenerator[None]:
        stream = self.streams[stream_id] = _Stream(self.context.fork(), stream_id)
        yield from self.event_to_child(stream, events.Start())


class Layers:
    """The stack of layers of one connection, with `top` as its uppermost.

    `seen` is told of every event before the layers are, `run` runs every hook.
    """

    def __init__(
        self,
        top: layer.Layer,
        seen: Callable[[events.Event], None],
        run: Callable[[commands.StartHook], None],
    ) -> None:
        self.top, self.seen, self.run = top, seen, run

    def handle_event(self, event: events.Event) -> Iterator[commands.Command]:
        """What is to be sent, opened and closed because of an event."""
        self.seen(event)
        send: commands.SendData | None = None
        for command in self._commands(event):
            if isinstance(command, commands.SendData):
                if send is None:
                    send = command
                elif (
                    send.connection is command.connection
                    and len(send.data) + len(command.data) <= TOGETHER
                ):
                    send.data += command.data
                else:
                    yield send
                    send = command
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

    def _commands(self, event: events.Event) -> Iterator[commands.Command]:
        """All commands that follow from an event, logs aside.

        A reply to a blocking hook has to wait until the layers have come to rest, as it would
        if a task brought it.
        """
        waiting = deque([event])
        while waiting:
            for command in self.top.handle_event(waiting.popleft()):
                if not isinstance(command, commands.Log):
                    yield command
                if isinstance(command, commands.StartHook) and command.blocking:
                    waiting.append(events.HookCompleted(command))


def next_layer(data: layer.NextLayer) -> None:
    """What the agent speaks, as far as its first bytes tell: TLS, HTTP, or anything else."""
    context, said = data.context, bytes(data.data_client())  # type: ignore[no-untyped-call]
    if len(context.layers) == 1:
        data.layer = Http(context, HTTPMode.regular)
    elif starts_like_tls_record(said):
        to_server = tls.ServerTLSLayer(context)
        to_server.child_layer = tls.ClientTLSLayer(context)
        data.layer = to_server
    elif context.client.alpn in SPOKEN or re.match(rb"[A-Za-z]+ [^\n]", said):
        data.layer = Http(context, HTTPMode.transparent)
    elif not re.fullmatch(rb"\x16|\x16\x03|[A-Za-z]{,20} ?", said):  # may yet become one of them
        data.layer = tcp.TCPLayer(context)
