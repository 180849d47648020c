"""Send WebSocket turns that must go live as HTTP requests.

After a fork the provider does not know the turns' connection, nor the recorded answers that they
continue. So a turn is sent as a POST with the full conversation, and the events of the response
stream become the messages of its answer. A response that is not a stream becomes the error event
that the provider sends over WebSocket.
"""

import json
from collections.abc import Awaitable
from copy import replace

from msgspec import Struct, field

from recorder.proxy.http1_response import AnswerEnd
from recorder.proxy.origin_connection import TakePart
from recorder.proxy.upstream import AgentLine, ChunkCallback, HeadCallback, UpstreamClient
from traces.bodies.content_encoding import decode_content
from traces.bodies.sse import parse_sse_events
from traces.bodies.websocket import is_websocket_upgrade
from traces.dialects import find_dialect, stored_conversation
from traces.model import Chunk, Exchange, Headers, Request, Response, find_header

_UPGRADE_HEADERS = (
    "upgrade", "connection", "content-length", "content-type", "accept", "accept-encoding",
    "openai-beta",
)  # fmt: skip


class WebSocketOverHttp:
    """A tap that stores the conversations of turns, and the upstream for those that go live."""

    def __init__(self, inner: UpstreamClient) -> None:
        self._inner = inner
        self._opened: dict[int, Headers] = {}
        self._kept: dict[str, stored_conversation.RawItems] = {}

    def request(self, exchange: Exchange) -> Exchange:
        """Store the headers that opened a connection."""
        if is_websocket_upgrade(exchange.request):
            self._opened[exchange.connection] = exchange.request.headers
        return exchange

    def done(self, exchange: Exchange) -> None:
        """Store request and answer as forwarded, so a fault in a result stays in later turns."""
        if not _is_websocket_turn(exchange) or exchange.response is None:
            return
        answer = stored_conversation.read_completed_answer(
            chunk.data for chunk in exchange.response.chunks
        )
        if answer is not None:
            id, items = answer
            self._kept[id] = (
                *self._find_conversation(exchange),
                *stored_conversation.read_input_items(exchange.forwarded.body),
                *items,
            )

    def _find_conversation(self, exchange: Exchange) -> stored_conversation.RawItems:
        return self._kept.get(stored_conversation.read_previous_id(exchange.request.body) or "", ())

    def attach(self, line: AgentLine) -> None:
        self._inner.attach(line)

    def release(self, line: AgentLine, *, reset: bool) -> None:
        self._inner.release(line, reset=reset)

    async def relay(self, exchange: Exchange, version: str, take: TakePart) -> AnswerEnd:
        """Relay an exchange that is not a turn."""
        return await self._inner.relay(exchange, version, take)

    async def send(self, exchange: Exchange, head: HeadCallback, chunk: ChunkCallback) -> Exchange:
        """Send an exchange upstream; the answer of a turn consists of messages."""
        if not _is_websocket_turn(exchange):
            return await self._inner.send(exchange, head, chunk)
        messages = _EventStreamMessages(head, chunk)
        http_request = replace(
            exchange, request=self._to_post_request(exchange), edits=(), transport="http"
        )
        result = await self._inner.send(http_request, messages.head, messages.chunk)
        await messages.finish_stream()
        answer = result.response and replace(messages.answer, ended=result.response.ended)
        return replace(exchange, response=answer, error=result.error)

    def _to_post_request(self, exchange: Exchange) -> Request:
        upgrade_headers = self._opened.get(exchange.connection, ())
        headers = tuple(
            (name, value)
            for name, value in upgrade_headers
            if name.lower() not in _UPGRADE_HEADERS
            and not name.lower().startswith("sec-websocket-")
        )
        content_headers = (("content-type", "application/json"), ("accept", "text/event-stream"))
        body = stored_conversation.make_full_request(
            exchange.forwarded.body, self._find_conversation(exchange)
        )
        length = ("content-length", str(len(body)))
        url = exchange.request.url
        if find_header(headers, "host") is None:
            headers = (("Host", url.split("/")[2]), *headers)
        return Request(
            method="POST", url=url, headers=(*headers, *content_headers, length), body=body
        )


def _is_websocket_turn(exchange: Exchange) -> bool:
    is_turn = exchange.transport == "websocket" and not is_websocket_upgrade(exchange.request)
    return is_turn and find_dialect(exchange.request) is not None


class _EventStreamMessages(Struct):
    """Splits the stream of an answer into messages as it arrives."""

    _head: HeadCallback
    _chunk: ChunkCallback
    _got: Response | None = None
    _text: bytes = b""
    _told: list[Chunk] = field(default_factory=list)

    @property
    def answer(self) -> Response:
        """The answer sent to the agent so far."""
        at = self._told[0].at if self._told else 0.0
        return Response(status=101, at=at, chunks=tuple(self._told))

    def head(self, response: Response) -> None:
        self._got = response

    def chunk(self, chunk: Chunk) -> Awaitable[None] | None:
        self._text = (self._text + chunk.data).replace(b"\r\n", b"\n")
        if not self._is_event_stream:
            return None
        messages = [event.data.encode() for event in parse_sse_events(self._text)]
        self._text = self._text.rpartition(b"\n\n")[2]
        payloads = [message for message in messages if message != b"[DONE]"]
        return self._send_messages(payloads, chunk.at) if payloads else None

    async def finish_stream(self) -> None:
        """Send a response that is not a stream as one error event."""
        if self._got is not None and not self._is_event_stream:
            await self._send_messages([_to_error_event(self._got, self._text)], self._got.at)

    @property
    def _is_event_stream(self) -> bool:
        assert self._got is not None
        kind = find_header(self._got.headers, "content-type") or ""
        return self._got.status == 200 and kind.startswith("text/event-stream")

    async def _send_messages(self, messages: list[bytes], at: float) -> None:
        for data in messages:
            self._told.append(Chunk(at=at, data=data))
            if len(self._told) == 1:
                self._head(replace(self.answer, chunks=()))
            pending = self._chunk(self._told[-1])
            if pending is not None:
                await pending


def _to_error_event(response: Response, body: bytes) -> bytes:
    text = decode_content(response.headers, body) or b""
    try:
        value = json.loads(text)
    except ValueError:
        value = {"message": text.decode("utf-8", "replace")}
    error = value.get("error", value) if isinstance(value, dict) else value
    return json.dumps({"type": "error", "status": response.status, "error": error}).encode()
