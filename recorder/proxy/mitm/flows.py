"""Convert mitmproxy's flows to exchanges and call the taps in order.

mitmproxy calls back four times per flow (request head, complete request, response head, complete
response) or reports an error. The pieces of a response body pass through a function here, so a
piece gets its time before mitmproxy forwards it in the same step of the event loop. Nothing is
decoded: bodies are the bytes on the wire without HTTP/1.1 chunk or HTTP/2 frame boundaries.
"""

import time
from collections.abc import Callable, Iterator
from copy import replace
from dataclasses import dataclass, field

from mitmproxy import http
from mitmproxy.net.http.url import hostport

from recorder.proxy.mitm.websocket import WebSocketExchanges
from traces.bodies.websocket import is_websocket_upgrade
from traces.model import Chunk, Exchange, Headers, Request, Response
from traces.tape.field_types import to_parsable_url
from traces.taps import TapChain

# Addressed to the proxy and not to the server, so not part of the request (RFC 9110 7.6.1).
PROXY_ONLY_HEADERS = ("proxy-connection", "proxy-authorization")

KEPT_ANSWER_BYTES = 1 << 25
"""Maximum response size in bytes for which taps get all chunks again at the end."""


@dataclass(slots=True)
class _LiveExchange:
    """An exchange in progress, with the part of the response received so far."""

    exchange: Exchange
    head: Response | None = None
    chunks: list[Chunk] = field(default_factory=list)
    held: bool = False
    size: int = 0

    def add_chunk(self, chunk: Chunk) -> None:
        """Store a piece of the response, unless the response is too large to be stored."""
        self.size += len(chunk.data)
        if self.size <= KEPT_ANSWER_BYTES:
            self.chunks.append(chunk)
        else:
            self.chunks.clear()

    def to_response(self) -> Response | None:
        return self.head and replace(self.head, chunks=tuple(self.chunks))


@dataclass(slots=True)
class MitmFlows:
    """The flows of one agent connection, shown to the taps as exchanges."""

    taps: TapChain
    clock: Callable[[], float]
    seqs: Iterator[int]
    connection: int
    _live: dict[str, _LiveExchange] = field(default_factory=dict, init=False)
    _begun: dict[str, tuple[int, float, int]] = field(default_factory=dict, init=False)

    @property
    def open_count(self) -> int:
        """How many exchanges are in progress."""
        return len(self._live)

    def begin_request(self, flow: http.HTTPFlow, stream: int) -> None:
        """Note the start of a request; taps get it once it is complete."""
        self._begun[flow.id] = (next(self.seqs), self.clock(), stream)
        for name in PROXY_ONLY_HEADERS:
            flow.request.headers.pop(name, None)

    def complete_request(self, flow: http.HTTPFlow) -> bool:
        """Handle a complete request; return False if a tap wants the agent to see it fail."""
        seq, started, stream = self._begun.pop(flow.id)
        request = from_mitm_request(flow.request)
        original = Exchange(
            seq=seq,
            request=request,
            started=started,
            connection=self.connection,
            stream=stream,
            transport="websocket" if is_websocket_upgrade(request) else "http",
        )
        live = self._live[flow.id] = _LiveExchange(original)
        exchange = self.taps.request(original)
        live.held = self.taps.holds(exchange)
        answered = exchange.response is not None or exchange.error is not None
        if answered and live.held:
            exchange = self.taps.response(exchange)
        live.exchange = exchange
        if exchange.forwarded is not exchange.request:
            _set_forwarded_request(flow.request, exchange.forwarded)
        if answered:
            return self._use_tap_answer(flow, live)
        return True

    def begin_response(self, flow: http.HTTPFlow) -> None:
        """Handle a response head: stream the body as it arrives, or hold it back."""
        live, answer = self._live[flow.id], _require_answer(flow.response)
        if live.held or live.head is not None:
            return
        self._show_head(live, from_mitm_response_head(answer, self.clock()))

        def pass_on(data: bytes) -> bytes | tuple[()]:
            if not data:  # the end; as an HTTP/1.1 chunk it would end the body too early
                return ()
            chunk = Chunk(at=self.clock(), data=data)
            live.add_chunk(chunk)
            self.taps.chunk(live.exchange, chunk)
            return data

        answer.stream = pass_on

    def complete_response(self, flow: http.HTTPFlow) -> bool:
        """Handle a complete response; return False if a tap wants the agent to see it fail."""
        live = self._live[flow.id]
        if live.held and live.exchange.response is None:
            response = _from_mitm_response(_require_answer(flow.response), self.clock())
            live.exchange = self.taps.response(replace(live.exchange, response=response))
            if not self._use_tap_answer(flow, live):
                return False
        if flow.websocket is not None:  # messages follow
            return True
        del self._live[flow.id]
        trailers, ended = _from_mitm_trailers(_require_answer(flow.response)), self.clock()
        complete = replace(_require_answer(live.to_response()), trailers=trailers, ended=ended)
        self.taps.done(replace(live.exchange, response=complete))
        return True

    def switch_to_websocket(self, flow: http.HTTPFlow) -> WebSocketExchanges:
        """Complete an upgrade; return the handler of the WebSocket's messages."""
        live = self._live.pop(flow.id)
        return WebSocketExchanges(
            live.exchange, _require_answer(live.head), self.taps, self.clock, self.seqs
        )

    def pass_on_refusal(self, flow: http.HTTPFlow, answer: Response, error: str) -> None:
        """Use the response of a proxy on the way to the server; `error` names that proxy."""
        live = self._live[flow.id]
        live.exchange = replace(live.exchange, response=answer, error=error)
        self._set_response(flow, live, answer)

    def break_off_exchange(self, flow: http.HTTPFlow, error: str) -> str | None:
        """Handle a failed exchange; return the error, or None if no tap got the request."""
        self._begun.pop(flow.id, None)
        live = self._live.pop(flow.id, None)
        if live is None:
            return None
        error = live.exchange.error or error
        self.taps.done(replace(live.exchange, response=live.to_response(), error=error))
        return error

    def _use_tap_answer(self, flow: http.HTTPFlow, live: _LiveExchange) -> bool:
        """Replace the server's response by a tap's; return False if the tap's is an error."""
        if live.exchange.error is not None:
            if live.exchange.response is not None:
                raise NotImplementedError("this proxy cannot cut a tap's answer in the middle")
            return False
        self._set_response(flow, live, _require_answer(live.exchange.response))
        return True

    def _set_response(self, flow: http.HTTPFlow, live: _LiveExchange, answer: Response) -> None:
        now = self.clock()
        flow.response = _to_mitm_response(answer)
        self._show_head(live, replace(answer, chunks=(), trailers=(), at=now, ended=None))
        for chunk in answer.chunks:
            live.chunks.append(replace(chunk, at=now))
            self.taps.chunk(live.exchange, live.chunks[-1])

    def _show_head(self, live: _LiveExchange, head: Response) -> None:
        live.head = head
        live.exchange = replace(live.exchange, response=head)
        self.taps.head(live.exchange)


def make_run_clock(began: float) -> Callable[[], float]:
    """Return a clock of seconds since `began`, a time.monotonic() value."""
    return lambda: time.monotonic() - began


def _require_answer[T](answer: T | None) -> T:
    """Return an answer that the order of mitmproxy's and the taps' calls guarantees."""
    if answer is None:
        raise ValueError("an exchange lost its answer")
    return answer


def from_mitm_request(request: http.Request) -> Request:
    """Convert a request from mitmproxy's form."""
    data = request.data
    scheme, path = data.scheme.decode("latin-1"), data.path.decode("latin-1")
    host = f"[{data.host}]" if ":" in data.host else data.host
    return Request(
        method=data.method.decode("latin-1"),
        url=to_parsable_url(f"{scheme}://{hostport(scheme, host, data.port)}{path}"),
        headers=_from_mitm_headers(data.headers),
        body=data.content or b"",
    )


def _set_forwarded_request(request: http.Request, forwarded: Request) -> None:
    request.path = "/" + "".join(forwarded.url.split("/", 3)[3:])
    request.headers = _to_mitm_headers(forwarded.headers)
    request.data.content = forwarded.body


def from_mitm_response_head(response: http.Response, at: float) -> Response:
    """Convert the head of a response that arrived at time `at` from mitmproxy's form."""
    data = response.data
    return Response(
        status=data.status_code,
        headers=_from_mitm_headers(data.headers),
        reason=data.reason.decode("latin-1"),
        version=data.http_version.decode("latin-1"),
        at=at,
    )


def _from_mitm_response(response: http.Response, at: float) -> Response:
    data = response.data.content
    chunks = (Chunk(at=at, data=data),) if data else ()
    return replace(
        from_mitm_response_head(response, at),
        chunks=chunks,
        trailers=_from_mitm_trailers(response),
        ended=at,
    )


def _from_mitm_trailers(response: http.Response) -> Headers:
    return _from_mitm_headers(response.trailers) if response.trailers else ()


def _to_mitm_response(answer: Response) -> http.Response:
    now = time.time()
    return http.Response(
        http_version=answer.version.encode("latin-1"),
        status_code=answer.status,
        reason=answer.reason.encode("latin-1"),
        headers=_to_mitm_headers(answer.headers),
        content=answer.body,
        trailers=_to_mitm_headers(answer.trailers) if answer.trailers else None,
        timestamp_start=now,
        timestamp_end=now,
    )


def _from_mitm_headers(headers: http.Headers) -> Headers:
    return tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in headers.fields)


def _to_mitm_headers(headers: Headers) -> http.Headers:
    return http.Headers([(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers])
