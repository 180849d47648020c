"""One connection of the agent: plain HTTP, or CONNECT and the protocol inside the tunnel.

Bytes go to `_receive`, which is `_receive_http` at first, `_detect_protocol` after a CONNECT, and
from the first byte in the tunnel on `_receive_tls` or again `_receive_http` (some clients tunnel
plain HTTP too). Requests are answered one after the other, in order; while one is in progress the
next ones wait, and if too many wait, reading from the agent pauses. A tap runs inside a task that
starts at once, so an answer that is due is written before `data_received` returns.

The end of the agent's stream means that the agent has left, as for most servers: a client that
waits for an answer keeps the connection open.
"""

import asyncio
import re
import ssl
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from recorder.proxy import tcp
from recorder.proxy.errors import to_connection_error
from recorder.proxy.http1 import (
    CONTINUE,
    ESTABLISHED,
    REFUSALS,
    Http1Request,
    Http1RequestReader,
    normalize_request_url,
    parse_authority_host,
    to_absolute_url,
)
from recorder.proxy.response_writer import AgentGoneError, ResponseWriter
from recorder.proxy.tls import (
    NO_APPLICATION_PROTOCOL,
    TLS_HANDSHAKE,
    ClientHello,
    TlsConnection,
    parse_client_hello,
)
from recorder.proxy.websocket_writer import AgentWebSocketClose, AgentWebSocketMessage
from traces.model import find_header

if TYPE_CHECKING:
    from recorder.proxy.http2 import Http2Streams
    from recorder.proxy.mitm.fallback import MitmSession
    from recorder.proxy.server import RunListener
    from recorder.proxy.websocket_reader import WebSocketReader

MAX_WAITING_REQUESTS = 32
"""Maximum number of requests waiting behind the current one; then reading pauses."""

LINGER_SECONDS = 2.0
"""Seconds between this end of a connection and the agent's, before it is aborted."""

_MAY_BECOME_HTTP = re.compile(rb"[A-Za-z]{,20} ?")
_HTTP_START = re.compile(rb"[A-Za-z]+ [^\n]")

ABANDONED_HANDSHAKE = "the agent left in the TLS handshake, as one that trusts other certificates"

_DELIVERY_SECONDS = 5.0
"""Seconds for which an agent that does not read can delay a reset."""


class AgentConnection(asyncio.Protocol):
    """The server side of one connection."""

    def __init__(self, stage: "RunListener", number: int) -> None:
        self.stage, self.number = stage, number
        self.paused = False
        """The kernel has not accepted all written data: wait with `wait_until_drained`."""
        self._transport: asyncio.Transport
        self._receive: Callable[[bytes], None] = self._receive_http
        self._receive_plain: Callable[[bytes], None] = self._receive_http
        """Gets what was in TLS."""
        self._http2: Http2Streams | None = None
        self._requests: Http1RequestReader | WebSocketReader = Http1RequestReader(stage.now)
        self._scheme, self._authority = "http", ""
        self._socket = ""
        """The URL of the WebSocket that this connection has become; empty while it is HTTP."""
        self._tls: TlsConnection | None = None
        self._hello = b""
        self.hello: ClientHello | None = None
        """What the agent offered in its TLS handshake."""
        self.gone = "eof"
        """The code of how the agent left."""
        self._mitm: MitmSession | None = None
        """Set once mitmproxy serves this connection."""
        self._streams = 0
        self._task: asyncio.Task[None] | None = None
        self._writer: ResponseWriter | None = None
        self._drained: asyncio.Future[None] | None = None
        self._reading = True
        self._ending = self._lost = False
        self._active_at = self._opened_at = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)
        # No data stays in the transport unnoticed: it is in the kernel, or writing is paused.
        transport.set_write_buffer_limits(high=0)
        self.stage.connections.add(self)
        if self.stage.upstream is not None:
            self.stage.upstream.attach(self)
        if self.stage.over:
            self.reset()

    def idle_seconds(self) -> float:
        """Return for how long nothing was received or answered; 0 while an answer goes on."""
        if self._task is not None or self._mitm is not None:
            return 0.0
        return time.monotonic() - self._active_at

    def head_seconds(self) -> float:
        """Return for how long the agent has sent the head of a request, or of TLS, without end."""
        if self._task is not None or self._mitm is not None:
            return 0.0
        if self._hello or (self._tls is not None and not self._tls.begun):
            return time.monotonic() - self._opened_at
        requests = self._requests
        return requests.head_seconds() if isinstance(requests, Http1RequestReader) else 0.0

    @property
    def is_last_answer(self) -> bool:
        """Whether the connection should end with the answer that begins now."""
        return self.stage.draining and not self._requests.ready

    def close_idle(self) -> None:
        """End cleanly between two answers, unless bytes of the agent wait to be read."""
        if not tcp.count_unread_bytes(self._transport):
            self.hang_up()

    def data_received(self, data: bytes) -> None:
        self._active_at = time.monotonic()
        if not self._ending:
            self._receive(data)

    def eof_received(self) -> None:
        self._note_abandoned_handshake()
        if self._mitm is not None:
            self._mitm.protocol.eof_received()
            return
        self._ending = True
        if self._task is not None:
            self._task.cancel()
        if self._http2 is not None:
            self._http2.close()

    def connection_lost(self, error: Exception | None) -> None:
        if isinstance(error, OSError):
            self.gone = to_connection_error(error).partition(":")[0]
        self._note_abandoned_handshake()
        self._ending = self._lost = True
        if self._timer is not None:
            self._timer.cancel()
        if self._http2 is not None:
            self._http2.close()
        if self.stage.upstream is not None:
            self.stage.upstream.release(self, reset=self.gone != "eof")
        if self._mitm is not None:
            self._mitm.lose_connection(error)
        elif self._task is not None:
            self._task.cancel()
        if self._task is None:
            self.stage.remove_connection(self)

    def pause_writing(self) -> None:
        self.paused = True
        if self._mitm is not None:
            self._mitm.protocol.pause_writing()

    def resume_writing(self) -> None:
        self.paused = False
        if self._mitm is not None:
            self._mitm.protocol.resume_writing()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._start_next_request()

    # Received data.

    def _receive_http(self, data: bytes) -> None:
        self._requests.feed(data)
        self._start_next_request()

    def _start_next_request(self) -> None:
        requests = self._requests
        while requests.ready and self._task is None and not (self.paused or self.is_closed):
            request = requests.ready.popleft()
            if self._hand_over_request(request):
                return None
            if isinstance(request, int):
                self._send_refusal(request)
            elif isinstance(request, AgentWebSocketClose):
                self._close_websocket(request)
            elif request.method == "CONNECT":
                assert isinstance(request, Http1Request)
                return self._open_tunnel(request.target)
            else:
                self._start_response(request)
                requests = self._requests
        if self.is_closed:
            return None
        if requests.waits and not requests.ready and self._task is None:
            requests.waits = False
            self.write(CONTINUE)
        self._set_reading(
            len(requests.ready) < MAX_WAITING_REQUESTS and not (requests.ready and requests.rest)
        )
        return None

    def _start_response(self, asked: Http1Request | AgentWebSocketMessage) -> None:
        url = self._socket if isinstance(asked, AgentWebSocketMessage) else self._to_url(asked)
        if url is None:
            return self._send_refusal(400)
        if self.stage.bases and isinstance(asked, Http1Request):
            asked, url = self._address_origin(asked, url)
        self._streams += 1
        self._writer = writer = ResponseWriter(self, asked, url, self._streams)
        task = asyncio.Task(writer.run(), loop=self.stage.loop, eager_start=True)
        if task.done():
            return self._report_failure(task)
        self._task = task
        task.add_done_callback(self._on_response_done)
        return None

    def _address_origin(self, asked: Http1Request, url: str) -> tuple[Http1Request, str]:
        """Return a request to a local port, addressed to the origin that the port represents."""
        scheme, _, rest = url.partition("://")
        authority, slash, path = rest.partition("/")
        if (origin := self.stage.bases.get(f"{scheme}://{authority}")) is None:
            return asked, url
        host = origin.partition("://")[2]
        headers = tuple((k, host if k.lower() == "host" else v) for k, v in asked.headers)
        return asked._replace(headers=headers), f"{origin}{slash}{path}"

    def _on_response_done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._active_at = time.monotonic()
        self._report_failure(task)
        if self._lost:
            self.stage.remove_connection(self)
        else:
            self._start_next_request()

    def _report_failure(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.stage.fail_run(error)

    def _to_url(self, asked: Http1Request) -> str | None:
        if "://" in asked.target.partition("?")[0] and not asked.target.startswith("/"):
            url = normalize_request_url(asked.target)
            if not self._authority:
                return url
            # A tunnel leads to its host, regardless of the host named inside: otherwise it would
            # bypass the check that allowed the tunnel. mitmproxy does the same.
            _, _, path = url.partition("://")[2].partition("/")
            return to_absolute_url(self._scheme, self._authority, f"/{path}")
        authority = self._authority or find_header(asked.headers, "host")
        if not authority and asked.version == "1.0":
            authority = self.stage.url.removeprefix("http://")
        return to_absolute_url(self._scheme, authority, asked.target) if authority else None

    def _send_refusal(self, status: int) -> None:
        self.write(REFUSALS[status])
        self.hang_up()

    def _open_tunnel(self, authority: str) -> None:
        rest = self._requests.rest
        if self._authority:
            return self._send_refusal(400)
        self._authority = authority
        self.write(ESTABLISHED)
        self._receive = self._detect_protocol
        self._set_reading(True)
        if rest:
            self._detect_protocol(rest)
        return None

    def _detect_protocol(self, data: bytes) -> None:
        """Detect the protocol inside the tunnel."""
        self._hello += data
        if self._hello[0] != TLS_HANDSHAKE:
            return self._detect_plain_protocol(self._hello)
        try:
            hello = parse_client_hello(self._hello)
        except ValueError as error:
            if self.stage.fallback is not None:
                return self._hand_over(self._take_hello())
            return self._note_untrusted(str(error))
        if hello is None:
            return None
        if self.stage.fallback is not None and "h2" in hello.alpn:
            return self._hand_over(self._take_hello())
        is_http2 = "h2" in hello.alpn and "http/1.1" not in hello.alpn
        if hello.alpn and "http/1.1" not in hello.alpn and not is_http2:
            return self._refuse_protocols(hello)
        self.hello = hello
        host = hello.sni or parse_authority_host(self._authority)
        try:
            context = self.stage.authority.context(host, "h2" if is_http2 else "http/1.1")
        except ValueError as error:
            return self._note_untrusted(str(error))
        self._tls = TlsConnection(context)
        if is_http2:
            self._receive_plain = self._receive_http2
        return self._enter_tunnel("https", partial(self._receive_tls, self._tls))

    def _detect_plain_protocol(self, start: bytes) -> None:
        """Detect HTTP; what is something else is relayed by the fallback, if there is one."""
        if self.stage.fallback is None or _HTTP_START.match(start):
            return self._enter_tunnel("http", self._receive_http)
        if _MAY_BECOME_HTTP.fullmatch(start):
            return None
        return self._hand_over(self._take_hello())

    def _take_hello(self) -> bytes:
        data, self._hello = self._hello, b""
        return data

    def _hand_over_request(
        self, request: Http1Request | AgentWebSocketMessage | AgentWebSocketClose | int
    ) -> bool:
        """Let mitmproxy serve an upgrade or bytes that cannot be parsed, and all that follows."""
        requests = self._requests
        if self.stage.fallback is None or not isinstance(requests, Http1RequestReader):
            return False
        if isinstance(request, int):
            data = requests.unparsed
        elif isinstance(request, Http1Request) and request.upgrade and request.method != "CONNECT":
            data = requests.take_back(request)
        else:
            return False
        if data:
            self._hand_over(data)
        return bool(data)

    def _hand_over(self, data: bytes) -> None:
        """Let mitmproxy serve this connection from here on."""
        assert self.stage.fallback is not None
        self._set_reading(True)
        self._mitm = mitm = self.stage.fallback.serve(
            self, self._authority, decrypted=self._tls is not None
        )
        self._task = mitm.task
        mitm.task.add_done_callback(self._on_mitm_done)
        if self._tls is None:
            self._receive = mitm.protocol.data_received
        mitm.protocol.data_received(data)

    def _on_mitm_done(self, task: asyncio.Task[None]) -> None:
        self._report_failure(task)
        self._transport.close()
        self._task = None
        if self._lost:
            self.stage.remove_connection(self)

    def _refuse_protocols(self, hello: ClientHello) -> None:
        """Refuse an agent that offers only protocols other than HTTP, with an alert."""
        self._transport.write(NO_APPLICATION_PROTOCOL)
        self._note_untrusted(f"the agent speaks only {', '.join(hello.alpn)}")

    def _enter_tunnel(self, scheme: str, receive: Callable[[bytes], None]) -> None:
        self._scheme, self._receive = scheme, receive
        self._requests = Http1RequestReader(self.stage.now)
        receive(self._take_hello())

    def _receive_tls(self, tls: TlsConnection, data: bytes) -> None:
        try:
            plain = tls.receive(data)
        except ssl.SSLError as error:
            self._transport.write(tls.take_outgoing())
            return self._note_untrusted(error.reason or str(error))
        if outgoing := tls.take_outgoing():
            self._transport.write(outgoing)
        if plain and self._mitm is not None:
            self._mitm.protocol.data_received(plain)
        elif plain:
            self._receive_plain(plain)
        if tls.over and not self.is_closed:
            self.eof_received()
            if self._mitm is None:
                self._transport.close()
        return None

    def _receive_http2(self, data: bytes) -> None:
        """Serve each stream of an agent that speaks HTTP/2 alone."""
        from h2.exceptions import ProtocolError

        from recorder.proxy.http2 import Http2Streams

        if self._http2 is None:
            url = to_absolute_url(self._scheme, self._authority, "/")
            self._http2 = Http2Streams(self.stage.port, url.removesuffix("/"), self._write_http2)
        try:
            self._http2.receive(data)
        except ProtocolError:
            self.hang_up()

    def _write_http2(self, data: bytes) -> None:
        """An agent that has left gets nothing more."""
        if not self.is_closed:
            self.write(data)

    def _note_abandoned_handshake(self) -> None:
        """Note an agent that left in the TLS handshake, as one that pins certificates may do."""
        if self._tls is not None and not (self._tls.begun or self._ending):
            self.stage.untrusted[self._authority] = ABANDONED_HANDSHAKE

    def _note_untrusted(self, why: str) -> None:
        self.stage.untrusted[self._authority] = why
        if self._task is not None:
            self._task.cancel()
        self.hang_up()

    def _close_websocket(self, closed: AgentWebSocketClose) -> None:
        self.write(closed.answer)
        self.hang_up()

    # Methods for the response writer.

    def switch_to_websocket(self, url: str) -> None:
        """Parse the agent's further bytes as WebSocket messages."""
        from recorder.proxy.websocket_reader import WebSocketReader

        rest = self._requests.rest
        self._socket, self._streams = url, 0
        self._requests = WebSocketReader(self.stage.now, self.write)
        self._requests.feed(rest)

    @property
    def local_port(self) -> int:
        """The port of this end."""
        return int(self._transport.get_extra_info("sockname")[1])

    def on_upstream_data(self, raw: bytes) -> None:
        """Pass on what the server sends between answers."""
        if not self.is_closed and (self._task is None or self._is_answered):
            self.write(raw)

    @property
    def _is_answered(self) -> bool:
        """Whether the current request has got all of its answer."""
        return self._writer is not None and self._writer.is_reported

    def on_upstream_end(self, *, reset: bool, truncated: bool) -> None:
        """End an idle connection as the server ended its own."""
        if self.is_closed or (self._task is not None and not self._is_answered):
            return
        if reset and not tcp.count_unsent_bytes(self._transport):
            self.reset()
        else:
            self.hang_up(truncated=truncated)

    def write(self, data: bytes) -> None:
        if self.is_closed:
            raise AgentGoneError
        self._transport.write(data if self._tls is None else self._tls.send(data))

    async def wait_until_drained(self) -> None:
        """Wait until the kernel has accepted all written data."""
        while self.paused:
            self._drained = self.stage.loop.create_future()
            await self._drained

    async def wait_until_delivered(self) -> None:
        """Wait until the kernel has sent its data, if the agent reads: a reset would drop it."""
        deadline = time.monotonic() + _DELIVERY_SECONDS
        while (
            not self.is_closed
            and tcp.count_unsent_bytes(self._transport)
            and time.monotonic() < deadline
        ):
            await asyncio.sleep(0.001)

    def hang_up(self, *, truncated: bool = False) -> None:
        """End cleanly: close_notify and FIN after the written data; the agent may answer them.

        If the server's end was `truncated`, this one lacks the close_notify too.
        """
        if self.is_closed:
            return
        if self._tls is not None and not truncated and (outgoing := self._tls.close()):
            self._transport.write(outgoing)
        self._ending = True
        self._transport.write_eof()
        self._set_reading(True)
        # Closing now, with unread bytes of the agent, would turn the FIN into a reset.
        self._timer = self.stage.loop.call_later(LINGER_SECONDS, self._transport.abort)

    def close(self) -> None:
        """End cleanly after the written data, without waiting for the agent's end."""
        if not self.is_closed:
            if self._tls is not None and (outgoing := self._tls.close()):
                self._transport.write(outgoing)
            self._ending = True
            self._transport.close()

    def reset(self) -> None:
        """Reset the connection (RST), also in the middle of TLS."""
        if not self._transport.is_closing():
            self._ending = True
            tcp.reset_connection(self._transport)

    def drop(self) -> None:
        """Abort the connection: the listener is closing."""
        self._ending = True
        if self._task is not None and self._mitm is None:
            self._task.cancel()
        self._transport.abort()

    @property
    def transport(self) -> asyncio.Transport:
        """The TCP connection."""
        return self._transport

    @property
    def is_closed(self) -> bool:
        """Whether nothing more can be written."""
        return self._ending or self._transport.is_closing()

    def _set_reading(self, wanted: bool) -> None:
        if wanted != self._reading:
            self._reading = wanted
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()
