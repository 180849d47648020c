"""From mitmproxy's flows to exchanges: what the taps are told, in which order.

mitmproxy calls back four times per flow (request head, whole request, answer head, whole
answer) or breaks off with an error. The pieces between the two heads of an answer pass through
a function of ours, so a piece has its time before mitmproxy sends it on in the same step of the
loop. Nothing is decoded: bodies are the bytes on the wire without the framing of HTTP/1.1
chunks or HTTP/2 frames.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from mitmproxy import http
from mitmproxy.net.http.url import hostport

from recorder.websocket import Turns
from traces.model import Chunk, Exchange, Headers, Request, Response
from traces.taps import Taps
from traces.websocket import upgrades

# Said to the proxy and not to the server, so never part of what was asked (RFC 9110 7.6.1).
FOR_THE_PROXY = ("proxy-connection", "proxy-authorization")

KEPT = 1 << 25
"""Bytes of an answer up to which taps get its chunks once more when it is over."""


@dataclass(slots=True)
class _Live:
    """An exchange under way, with the answer as far as it came."""

    exchange: Exchange
    head: Response | None = None
    chunks: list[Chunk] = field(default_factory=list)
    held: bool = False
    size: int = 0

    def add(self, chunk: Chunk) -> None:
        """Keep a piece of the answer, as long as the whole of it is not too large for that."""
        self.size += len(chunk.data)
        if self.size <= KEPT:
            self.chunks.append(chunk)
        else:
            self.chunks.clear()

    def response(self) -> Response | None:
        return self.head and replace(self.head, chunks=tuple(self.chunks))


@dataclass(slots=True)
class Flows:
    """The flows of one agent connection, shown to the taps as exchanges."""

    taps: Taps
    clock: Callable[[], float]
    seqs: Iterator[int]
    connection: int
    _live: dict[str, _Live] = field(default_factory=dict, init=False)
    _begun: dict[str, tuple[int, float, int]] = field(default_factory=dict, init=False)

    @property
    def open(self) -> int:
        """How many exchanges are under way."""
        return len(self._live)

    def begin(self, flow: http.HTTPFlow, stream: int) -> None:
        """A request begins; nobody is told before it is whole."""
        self._begun[flow.id] = (next(self.seqs), self.clock(), stream)
        for name in FOR_THE_PROXY:
            flow.request.headers.pop(name, None)

    def asked(self, flow: http.HTTPFlow) -> bool:
        """A request is whole; False where a tap wants the agent to see it fail."""
        seq, started, stream = self._begun.pop(flow.id)
        request = read_request(flow.request)
        asked = Exchange(
            seq=seq,
            request=request,
            started=started,
            connection=self.connection,
            stream=stream,
            transport="websocket" if upgrades(request) else "http",
        )
        live = self._live[flow.id] = _Live(asked)
        exchange = self.taps.request(asked)
        live.held = self.taps.holds(exchange)
        answered = exchange.response is not None or exchange.error is not None
        if answered and live.held:
            exchange = self.taps.response(exchange)
        live.exchange = exchange
        if exchange.edits:
            _forward(flow.request, exchange.forwarded)
        if answered:
            return self._answer(flow, live)
        return True

    def answering(self, flow: http.HTTPFlow) -> None:
        """The head of an answer is there: pass the rest on as it comes, or hold it back."""
        live, answer = self._live[flow.id], _present(flow.response)
        if live.held or live.head is not None:
            return
        self._show_head(live, read_response(answer, self.clock()))

        def pass_on(data: bytes) -> bytes | tuple[()]:
            if not data:  # the end; as a chunk of HTTP/1.1 it would be an end too early
                return ()
            chunk = Chunk(at=self.clock(), data=data)
            live.add(chunk)
            self.taps.chunk(live.exchange, chunk)
            return data

        answer.stream = pass_on

    def answered(self, flow: http.HTTPFlow) -> bool:
        """An answer is whole; False where a tap wants the agent to see it fail."""
        live = self._live[flow.id]
        if live.held and live.exchange.response is None:
            whole = _whole(_present(flow.response), self.clock())
            live.exchange = self.taps.response(replace(live.exchange, response=whole))
            if not self._answer(flow, live):
                return False
        if flow.websocket is not None:  # there is more to come
            return True
        del self._live[flow.id]
        trailers, ended = _trailers(_present(flow.response)), self.clock()
        done = replace(_present(live.response()), trailers=trailers, ended=ended)
        self.taps.done(replace(live.exchange, response=done))
        return True

    def switched(self, flow: http.HTTPFlow) -> Turns:
        """An upgrade is through; what comes now are the messages of a WebSocket."""
        live = self._live.pop(flow.id)
        return Turns(live.exchange, _present(live.head), self.taps, self.clock, self.seqs)

    def refused(self, flow: http.HTTPFlow, answer: Response, error: str) -> None:
        """Somebody on the way to the server answered in its place, and `error` says who."""
        live = self._live[flow.id]
        live.exchange = replace(live.exchange, response=answer, error=error)
        self._give(flow, live, answer)

    def broke(self, flow: http.HTTPFlow, error: str) -> str | None:
        """No whole answer will come; returns why, or None where nobody was told of the request."""
        self._begun.pop(flow.id, None)
        live = self._live.pop(flow.id, None)
        if live is None:
            return None
        error = live.exchange.error or error
        self.taps.done(replace(live.exchange, response=live.response(), error=error))
        return error

    def _answer(self, flow: http.HTTPFlow, live: _Live) -> bool:
        """Put the answer of a tap in place of the server's; False where it is an error."""
        if live.exchange.error is not None:
            if live.exchange.response is not None:
                raise NotImplementedError("this proxy cannot cut a tap's answer in the middle")
            return False
        self._give(flow, live, _present(live.exchange.response))
        return True

    def _give(self, flow: http.HTTPFlow, live: _Live, answer: Response) -> None:
        now = self.clock()
        flow.response = _response(answer)
        self._show_head(live, replace(answer, chunks=(), trailers=(), at=now, ended=None))
        for chunk in answer.chunks:
            live.chunks.append(replace(chunk, at=now))
            self.taps.chunk(live.exchange, live.chunks[-1])

    def _show_head(self, live: _Live, head: Response) -> None:
        live.head = head
        live.exchange = replace(live.exchange, response=head)
        self.taps.head(live.exchange)


def since(began: float) -> Callable[[], float]:
    """A clock of seconds since `began`, a time of time.monotonic()."""
    return lambda: time.monotonic() - began


def _present[T](answer: T | None) -> T:
    """An answer that the order of mitmproxy's calls and of the taps says must be there."""
    if answer is None:
        raise ValueError("an exchange lost its answer")
    return answer


def read_request(request: http.Request) -> Request:
    """What was asked, as mitmproxy holds it."""
    data = request.data
    scheme, path = data.scheme.decode("latin-1"), data.path.decode("latin-1")
    host = f"[{data.host}]" if ":" in data.host else data.host
    return Request(
        method=data.method.decode("latin-1"),
        url=f"{scheme}://{hostport(scheme, host, data.port)}{path}",
        headers=_text(data.headers),
        body=data.content or b"",
    )


def _forward(request: http.Request, forwarded: Request) -> None:
    request.headers = _fields(forwarded.headers)
    request.data.content = forwarded.body


def read_response(response: http.Response, at: float) -> Response:
    """The head of an answer that came `at` this time, as mitmproxy holds it."""
    data = response.data
    return Response(
        status=data.status_code,
        headers=_text(data.headers),
        reason=data.reason.decode("latin-1"),
        version=data.http_version.decode("latin-1"),
        at=at,
    )


def _whole(response: http.Response, at: float) -> Response:
    data = response.data.content
    chunks = (Chunk(at=at, data=data),) if data else ()
    return replace(
        read_response(response, at), chunks=chunks, trailers=_trailers(response), ended=at
    )


def _trailers(response: http.Response) -> Headers:
    return _text(response.trailers) if response.trailers else ()


def _response(answer: Response) -> http.Response:
    now = time.time()
    return http.Response(
        http_version=answer.version.encode("latin-1"),
        status_code=answer.status,
        reason=answer.reason.encode("latin-1"),
        headers=_fields(answer.headers),
        content=answer.body,
        trailers=_fields(answer.trailers) if answer.trailers else None,
        timestamp_start=now,
        timestamp_end=now,
    )


def _text(headers: http.Headers) -> Headers:
    return tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in headers.fields)


def _fields(headers: Headers) -> http.Headers:
    return http.Headers([(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers])
