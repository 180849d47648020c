"""Answer one request of the agent: ask the taps, write the answer, report it to the taps.

All data for an agent is written here, so `done` reports exactly the data written, with the actual
times. Bytes that are due together are written together. A server's bytes pass unchanged, and the
taps get the end of an answer before its last bytes are written: what an agent has had completely is
on the tape.

An exchange that broke off is replayed as follows. `eof` ends the connection cleanly before the
answer is complete. After `timeout`, and after `cancelled` (the agent gave up during recording),
nothing more arrives and the connection stays open until the agent gives up, or for the seconds
given by an injected hang (`timeout: 2.5 s`). Any other error is a reset. What the server had sent
that was no HTTP comes before that. A `refused` exchange with a response is a refusal made here, and
its response is sent completely.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from copy import replace
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING

from recorder.proxy.held_stream import HeldMcpStream, drop_first_bytes
from recorder.proxy.http1 import Http1Request, ResponseFraming, choose_response_framing
from recorder.proxy.http1_response import UNPARSED_BYTES, announce_close
from recorder.proxy.websocket_writer import (
    AgentWebSocketMessage,
    WebSocketFraming,
    accept_upgrade,
    choose_websocket_framing,
)
from traces.bodies import stream_events
from traces.bodies.websocket import is_websocket_upgrade
from traces.dialects import mcp
from traces.model import Chunk, Exchange, Headers, Request, Response, find_header

if TYPE_CHECKING:
    from recorder.proxy.connection import AgentConnection
    from recorder.proxy.http1_response import AnswerEnd, AnswerPart
    from recorder.proxy.upstream import UpstreamClient

_HANG_SECONDS = re.compile(r"timeout: ([\d.]+) s")
KEPT_ANSWER_BYTES = 1 << 25
"""Maximum size of an answer for which taps get all chunks again at the end."""
RECHECK_SECONDS = 0.01
"""How soon it is asked again whether a chunk is due, which may depend on the time."""
CLIENT_SECONDS = 120.0
"""Maximum wait for an answer of the client that a recorded server had before it went on."""
RESET_SECONDS = 0.05
"""Between an answer that is played and its reset: Node takes both at once for a clean end."""
WRITE_BYTES = 1 << 16
"""Bytes written at once, before checking whether the agent reads them."""


class AgentGoneError(Exception):
    """The agent has left, so its answer cannot be written."""


class ResponseWriter:
    """Writes the answer to one request on the connection it came from."""

    def __init__(
        self,
        line: "AgentConnection",
        asked: Http1Request | AgentWebSocketMessage,
        url: str,
        stream: int,
    ) -> None:
        self._line, self._stage, self._asked = line, line.stage, asked
        request = _to_exchange_request(asked, url)
        socket = isinstance(asked, AgentWebSocketMessage) or is_websocket_upgrade(request)
        self._exchange = Exchange(
            seq=next(line.stage.seqs),
            connection=line.number,
            stream=stream,
            request=request,
            started=asked.started,
            transport="websocket" if socket else "http",
        )
        self._error: str | None = "cancelled"
        """The exchange's error if the agent leaves now."""
        self._framing: ResponseFraming | WebSocketFraming = ResponseFraming(b"", "none", False)
        self._answer: Response | None = None
        """The answer as far as it was written, without its chunks."""
        self._headed = False
        self._seen = self._exchange
        """The exchange as shown to taps while it is in progress: with a head and without chunks."""
        self._chunks: list[Chunk] = []
        self._out: list[bytes] = []
        self._due: list[bytes] = []
        """The chunks that are complete once `_out` is written."""
        self._part = b"", 0
        """A chunk that is not complete yet, and how much of it was written."""
        self._size = 0
        self._whole = False
        """The answer was written in one piece, and the taps have not got it yet."""
        self._at = 0.0
        self._trailers: Headers = ()
        self._ended: float | None = None
        self._kept = 0
        """Bytes of all chunks shown so far; beyond KEPT_ANSWER_BYTES no chunk is stored."""
        self._closes = False
        """The agent was told that its connection ends with this answer."""
        self.is_reported = False
        """The taps have got the end of the exchange."""
        self._live = False
        self._find_unparsed: Callable[[], bytes] = bytes
        """Returns what the server has sent that is no HTTP."""
        self._response_came: asyncio.Event | None = None
        self._stream: HeldMcpStream | None = None
        """A held answer whose first events the agent has already."""

    async def run(self) -> None:
        """Run until the agent has its answer or has left; raises what a tap raises."""
        try:
            with suppress(AgentGoneError):
                await self._serve_exchange()
        except asyncio.CancelledError:
            if self._live and self._error == "cancelled":
                self._error = f"cancelled: {self._line.gone} by the agent"
            self._report_done()
            raise
        self._report_done()

    async def _serve_exchange(self) -> None:
        taps, upstream = self._stage.taps, self._stage.upstream
        self._exchange = exchange = taps.request(self._exchange)
        self._stage.note_request()
        held = taps.holds(exchange)
        if exchange.response is None and exchange.error is None:
            self._live = True
            if is_websocket_upgrade(exchange.request):
                exchange, held = refuse_live_request(exchange, 426, "no WebSocket goes out"), False
            elif upstream is None:
                exchange, held = refuse_live_request(exchange, 502, "no way out"), False
            elif held:
                exchange = await self._send_held(exchange, upstream)
                if self._stream is None or not self._stream.passed:
                    exchange = _shift_stream_to(exchange, self._stage.now())
            elif isinstance(self._asked, AgentWebSocketMessage):
                return await self._stream_from_upstream(upstream)
            elif await self._relay_from_upstream(upstream, self._asked):
                return None
            else:
                exchange = self._exchange
        self._exchange = taps.response(exchange) if held else exchange
        if self._exchange.response is not exchange.response:
            self._exchange = replace(self._exchange, unparsed=b"")
        return await self._perform_response()

    async def _send_held(self, exchange: Exchange, upstream: "UpstreamClient") -> Exchange:
        """Return the exchange with its answer; a resumed stream ends with the response in it."""
        if not mcp.is_listening_request(exchange.request):
            return await upstream.send(exchange, self._hold_head, self._hold_chunk)
        self._response_came = asyncio.Event()
        waits = (
            asyncio.ensure_future(upstream.send(exchange, self._hold_head, self._hold_chunk)),
            asyncio.ensure_future(self._response_came.wait()),
        )
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if waits[0].done() or self._stream is None:
                return await waits[0]
            return exchange.with_response(self._stream.to_response(self._stage.now()), None)
        finally:
            for each in waits:
                each.cancel()

    def _hold_head(self, response: Response) -> None:
        if mcp.is_mcp_stream(self._exchange.request, response.headers):
            is_listening = mcp.is_listening_request(self._exchange.request)
            self._stream = HeldMcpStream(response, is_listening)

    def _hold_chunk(self, chunk: Chunk) -> Awaitable[None] | None:
        """Pass on what precedes an MCP response: the server may wait for the client's answer."""
        if self._stream is None:
            return None
        data = self._stream.take(chunk)
        if self._stream.has_response and self._response_came is not None:
            self._response_came.set()
        if not data:
            return None
        if not self._framing.head:
            self._open_response(self._stream.head, None, None)
        self._queue_chunk(data)
        self._write_and_notify()
        return self._line.wait_until_drained() if self._line.paused else None

    async def _perform_response(self) -> None:
        exchange = self._exchange
        response, error = exchange.response, exchange.error
        if response is not None and error is not None and _parse_error_code(error) == "refused":
            error = None
        if response is not None:
            if response.at > self._stage.now():
                await self._wait_until(response.at)
            length = sum([len(chunk.data) for chunk in response.chunks])
            passed = self._stream.passed if self._stream is not None else 0
            if not passed:
                self._open_response(response, length, error)
            is_due = length <= WRITE_BYTES and _find_last_due_time(response) <= self._stage.now()
            for number, chunk in enumerate(drop_first_bytes(response.chunks, passed)):
                if not self._stage.is_due(exchange, number):
                    await self._wait_for_client(number)
                if is_due:
                    self._queue_chunk(chunk.data)
                else:
                    await self._play_chunk(chunk)
        if error is not None:
            if exchange.unparsed:
                self._queue_unparsed(exchange.unparsed)
            await self._break_off(error, self._stage.hold)
        elif response is not None:
            if response.ended is not None and self._must_wait_for_end(response):
                await self._wait_until(response.ended)
            await self._finish_response(response.trailers)

    def _must_wait_for_end(self, response: Response) -> bool:
        """Return whether the end has a time of its own; a turn's has if the server closes."""
        if self._framing.body == "messages":
            return find_header(response.trailers, "close") is not None
        return self._framing.body in ("chunked", "close")

    async def _wait_for_client(self, number: int) -> None:
        """Wait until what came before this chunk in the recording has happened."""
        await self._write_and_drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLIENT_SECONDS):
                while not self._stage.is_due(self._exchange, number):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(RECHECK_SECONDS):
                            await self._stage.wait_for_request()

    async def _stream_from_upstream(self, upstream: "UpstreamClient") -> None:
        self._exchange = exchange = await upstream.send(
            self._exchange, self._write_head, self._write_chunk
        )
        if exchange.error is not None:
            await self._break_off(exchange.error, 0.0)
        elif exchange.response is not None:
            await self._finish_response(exchange.response.trailers)

    async def _relay_from_upstream(self, upstream: "UpstreamClient", request: Http1Request) -> bool:
        """Pass a server's answer on; return False if a whole answer came in place of it."""
        end = await upstream.relay(self._exchange, request.version, self._take_part)
        if end.instead is not None:
            self._exchange = replace(self._exchange, response=end.instead, error=end.error)
            return False
        if end.error is not None:
            await self._break_off(end.error, 0.0, end)
        elif self._closes or not (request.stays and end.keeps):
            self._line.hang_up(truncated=end.truncated)
        else:
            await self._line.wait_until_drained()
        return True

    def _take_part(self, part: "AnswerPart") -> Awaitable[None] | None:
        """Pass a server's bytes to the agent, and show the taps what they contain."""
        if self._line.is_closed:
            raise AgentGoneError
        self._at = part.at
        self._find_unparsed = part.find_unparsed
        raw = part.raw
        if part.head is not None:
            self._answer = part.head
            if self._line.is_last_answer and (closing := announce_close(raw, part.head)):
                self._closes, raw = True, closing
        self._due += part.pieces
        if part.end is not None:
            self._complete_live(part.end)
        if raw:
            self._line.write(raw)
        if part.end is None:
            self._notify_taps()
        return self._line.wait_until_drained() if self._line.paused else None

    def _complete_live(self, end: "AnswerEnd") -> None:
        """Report a complete answer, whose last bytes are not written yet."""
        self._whole = not self._headed
        if not self._whole:
            self._notify_taps()
        self._trailers, self._ended, self._error = end.trailers, self._at, self._exchange.error
        self._report_done()

    def _write_head(self, response: Response) -> None:
        self._open_response(response, None, None)
        self._write_and_notify()

    def _write_chunk(self, chunk: Chunk) -> Awaitable[None] | None:
        self._queue_chunk(chunk.data)
        self._write_and_notify()
        return self._line.wait_until_drained() if self._line.paused else None

    async def _wait_until(self, at: float) -> None:
        """Write the data that is already due, then wait."""
        if at > self._stage.now():
            await self._write_and_drain()
            await self._stage.clock.wait_until(at)

    def _open_response(self, response: Response, length: int | None, error: str | None) -> None:
        if isinstance(self._asked, AgentWebSocketMessage):
            self._framing = choose_websocket_framing(response)
        else:
            switches = response.status == 101 and is_websocket_upgrade(self._exchange.request)
            if switches:
                response = accept_upgrade(self._exchange.request, response)
            cut = error is not None
            self._framing = choose_response_framing(self._asked, response, length=length, cut=cut)
            if switches:
                self._framing = choose_websocket_framing(response, self._framing.head)
                self._line.switch_to_websocket(self._exchange.request.url)
        self._answer = response
        self._out.append(self._framing.head)

    async def _play_chunk(self, chunk: Chunk) -> None:
        data = chunk.data
        if self._framing.body == "none" or not (data or self._framing.body == "messages"):
            return
        await self._wait_until(chunk.at)
        if len(data) <= WRITE_BYTES:
            self._queue_chunk(data)
            if self._size > WRITE_BYTES:
                await self._write_and_drain()
            return
        self._out.append(self._framing.before(len(data)))
        for start in range(0, len(data), WRITE_BYTES):
            self._out.append(data[start : start + WRITE_BYTES])
            self._write_and_notify()
            self._part = data, start + WRITE_BYTES
            if self._line.paused:
                await self._line.wait_until_drained()
        self._out.append(self._framing.after())
        self._due.append(data)

    def _queue_chunk(self, data: bytes) -> None:
        if self._framing.body == "messages" or (data and self._framing.body != "none"):
            self._out += (self._framing.before(len(data)), data, self._framing.after())
            self._due.append(data)
            self._size += len(data)

    def _queue_unparsed(self, unparsed: bytes) -> None:
        """Queue what was no HTTP, which has the end of the last chunk in it."""
        response = self._exchange.response
        if response is not None and self._framing.body != "chunked":
            return
        if response is not None and response.chunks:
            if self._out[-1:] == [self._framing.after()]:
                self._out.pop()
            else:
                unparsed = unparsed.removeprefix(b"\r\n")
        self._out.append(unparsed)

    async def _write_and_drain(self) -> None:
        self._write_and_notify()
        if self._line.paused:
            await self._line.wait_until_drained()

    def _write_and_notify(self) -> None:
        self._write_queued()
        self._notify_taps()

    def _write_queued(self) -> None:
        # Before the write: an agent can react to these bytes before the write returns, and its
        # next request must not be on the tape with an earlier time.
        self._at = self._stage.now()
        if data := b"".join(self._out):
            self._line.write(data)
            self._out.clear()
            self._size = 0

    def _notify_taps(self) -> None:
        at = self._at
        if self._answer is not None and not self._headed:
            self._headed = True
            self._answer = _build_written_response(self._answer, at)
            self._seen = self._exchange.with_response(self._answer, None)
            self._stage.taps.head(self._seen)
        if self._due:
            self._part = b"", 0
            for data in self._due:
                chunk = Chunk(at=at, data=data)
                self._keep_chunk(chunk)
                self._stage.taps.chunk(self._seen, chunk)
            self._due.clear()

    def _keep_chunk(self, chunk: Chunk) -> None:
        self._kept += len(chunk.data)
        if self._kept <= KEPT_ANSWER_BYTES:
            self._chunks.append(chunk)
        else:
            self._chunks.clear()

    async def _finish_response(self, trailers: Headers) -> None:
        """Finish a complete answer."""
        self._out += (self._framing.end(trailers), self._exchange.unparsed)
        self._write_queued()
        self._whole = not (self._headed or self._line.paused)
        if not self._whole:
            self._notify_taps()
            await self._line.wait_until_drained()
        self._trailers = trailers if self._framing.body in ("chunked", "messages") else ()
        self._ended = self._stage.now()
        self._error = self._exchange.error
        if not self._framing.stays:
            self._line.hang_up()

    async def _break_off(self, error: str, hold: float, end: "AnswerEnd | None" = None) -> None:
        """End without a (further) answer; a timeout is held open only if `hold` is not 0."""
        await self._write_and_drain()
        code = (end and end.ending) or _parse_error_code(error)
        if code in ("timeout", "cancelled") and hold:
            self._error = error
            await asyncio.sleep(min(hold, parse_hang_seconds(error)))
            self._line.hang_up()
        elif code == "eof":
            self._line.hang_up(truncated=end is not None and end.truncated)
        else:
            await self._line.wait_until_delivered()
            if hold and (self._headed or self._exchange.unparsed):
                await asyncio.sleep(RESET_SECONDS)
            self._line.reset()
        self._error = error

    def _report_done(self) -> None:
        if self.is_reported or self._stage.failure is not None:
            return None  # the connection was closed by the failed run, not by the agent
        self.is_reported = True
        if self._whole and self._answer is not None:
            chunks = [Chunk(at=self._at, data=data) for data in self._due]
            response = _build_written_response(
                self._answer, self._at, chunks, self._trailers, self._ended
            )
            return self._stage.taps.whole(self._add_end(response))
        answer = self._answer if self._headed else None
        if answer is not None:
            data, written = self._part
            if written:
                self._keep_chunk(Chunk(at=self._at, data=data[:written]))
            answer = _build_written_response(
                answer, answer.at, self._chunks, self._trailers, self._ended
            )
        return self._stage.taps.done(self._add_end(answer))

    def _add_end(self, answer: Response | None) -> Exchange:
        """Return the exchange with its end; more that is no HTTP than is kept cannot be played."""
        exchange, unparsed = (
            self._exchange.with_response(answer, self._error),
            self._find_unparsed(),
        )
        if len(unparsed) > UNPARSED_BYTES:
            error = f"damaged: the server sent more than {UNPARSED_BYTES} bytes that are no HTTP"
            return replace(exchange, error=error)
        return replace(exchange, unparsed=unparsed) if unparsed else exchange


def parse_hang_seconds(error: str) -> float:
    """Return how long `timeout: 2.5 s` holds a connection open; infinite without a number."""
    match = _HANG_SECONDS.fullmatch(error)
    return float(match[1]) if match else inf


def _to_exchange_request(request: Http1Request | AgentWebSocketMessage, url: str) -> Request:
    if isinstance(request, AgentWebSocketMessage):
        return Request(method=request.method, url=url, body=request.data)
    return Request(method=request.method, url=url, headers=request.headers, body=request.body)


def refuse_live_request(exchange: Exchange, status: int, why: str) -> Exchange:
    """Answer the exchange with a refusal; no server is contacted."""
    body = f"refused: {why}\n".encode()
    headers = (("content-type", "text/plain"), ("content-length", str(len(body))))
    response = Response(
        status=status,
        reason=HTTPStatus(status).phrase,
        headers=headers,
        chunks=(Chunk(at=0.0, data=body),),
    )
    return replace(exchange, response=response, error=f"refused: {why}", answered_by="refused")


def _find_last_due_time(response: Response) -> float:
    """Return the time at which the last bytes of an answer are due."""
    return max([response.at, *[chunk.at for chunk in response.chunks]])


def _parse_error_code(error: str) -> str:
    return error.partition(":")[0]


def _build_written_response(
    planned: Response,
    at: float,
    chunks: Iterable[Chunk] = (),
    trailers: Headers = (),
    ended: float | None = None,
) -> Response:
    return Response(
        status=planned.status,
        headers=planned.headers,
        chunks=tuple(chunks),
        trailers=trailers,
        reason=planned.reason,
        version=planned.version,
        at=at,
        ended=ended,
    )


def _shift_stream_to(exchange: Exchange, now: float) -> Exchange:
    """Shift a held stream to begin now, with the gaps between its chunks unchanged."""
    answer = exchange.response
    if answer is None or not (
        exchange.transport == "websocket" or stream_events.is_event_stream(answer.headers)
    ):
        return exchange
    return exchange.with_delay(max(0.0, now - answer.at))
