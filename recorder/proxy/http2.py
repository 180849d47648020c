"""HTTP/2 for agents that speak nothing else: each stream is a request of HTTP/1.1 to this proxy.

So replays serve HTTP/2 with all that they do for HTTP/1.1, and requests match whatever protocol
they were recorded in. A stream's request is sent when it is complete; the answer's head, pieces and
trailers follow as they come. An answer that breaks off is a reset of its stream (RFC 9113 8.1), as
the connection has others.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError
from msgspec import Struct, field

from recorder.proxy.http1_response import Http1ResponseReader, encode_request
from traces.model import Headers, Request

_READ_SIZE = 1 << 16
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade")
)
"""Fields that HTTP/2 forbids (RFC 9113 8.2.2)."""


class _Stream(Struct):
    """One request, and the bytes of its answer that the agent's window has no room for."""

    headers: list[tuple[str, str]]
    body: bytearray = field(default_factory=bytearray)
    task: asyncio.Task[None] | None = None
    unsent: bytearray = field(default_factory=bytearray)
    trailers: Headers = ()
    is_complete: bool = False


class Http2Streams:
    """The streams of one connection. `write` gets what goes to the agent.

    `port` is that of this proxy, `origin` the scheme and authority that the connection leads to.
    """

    def __init__(self, port: int, origin: str, write: Callable[[bytes], None]) -> None:
        self._port, self._origin, self._write = port, origin, write
        config = H2Configuration(client_side=False, header_encoding="latin-1")
        self._machine = H2Connection(config)
        self._streams: dict[int, _Stream] = {}
        self._machine.initiate_connection()
        self._send()

    def receive(self, data: bytes) -> None:
        """Take bytes of the agent; raises h2's ProtocolError if they are no HTTP/2."""
        try:
            events = self._machine.receive_data(data)
        except ProtocolError:
            self._send()
            raise
        for event in events:
            match event:
                case RequestReceived():
                    fields = [(str(name), str(value)) for name, value in event.headers]
                    self._streams[event.stream_id] = _Stream(fields)
                case DataReceived():
                    self._streams[event.stream_id].body += event.data
                    size = event.flow_controlled_length
                    self._machine.acknowledge_received_data(size, event.stream_id)
                case StreamEnded():
                    stream = self._streams[event.stream_id]
                    stream.task = asyncio.ensure_future(self._answer(event.stream_id, stream))
                case StreamReset():
                    self._forget(event.stream_id)
        for number in tuple(self._streams):
            self._flush(number)
        self._send()

    def close(self) -> None:
        """End all streams: the agent has left."""
        for number in tuple(self._streams):
            self._forget(number)

    def _forget(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is not None and stream.task is not None:
            stream.task.cancel()

    def _send(self) -> None:
        if data := self._machine.data_to_send():
            self._write(data)

    async def _answer(self, number: int, stream: _Stream) -> None:
        """Send the request and pass on its answer; a connection that fails resets the stream."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return self._reset(number)
        try:
            request = _to_request(stream, self._origin)
            writer.write(b"".join(encode_request(request, request.url, "1.1")))
            await self._pass_on(number, stream, reader, request.method == "HEAD")
        except OSError:
            self._reset(number)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        return None

    async def _pass_on(
        self, number: int, stream: _Stream, source: asyncio.StreamReader, head_only: bool
    ) -> None:
        answer = Http1ResponseReader(head_only=head_only)
        while not answer.complete and answer.error is None:
            if data := await source.read(_READ_SIZE):
                answer.feed(data, 0.0)
            elif not answer.finish():
                return self._reset(number)
            if (head := answer.take_head()) is not None:
                fields = [(":status", str(head.status)), *_select_fields(head.headers)]
                is_all = _has_status_of_grpc(head.headers)
                self._machine.send_headers(number, fields, end_stream=is_all)
                if is_all:
                    self._streams.pop(number)
                    return self._send()
            for piece in answer.take_pieces():
                stream.unsent += piece
            stream.is_complete, stream.trailers = answer.complete, answer.trailers
            self._flush(number)
            self._send()
        return None if answer.error is None else self._reset(number)

    def _flush(self, number: int) -> None:
        """Send what the windows of the stream and the connection have room for."""
        stream, machine = self._streams[number], self._machine
        while stream.unsent:
            room = machine.local_flow_control_window(number)
            size = min(room, machine.max_outbound_frame_size, len(stream.unsent))
            if size <= 0:
                return
            machine.send_data(number, bytes(stream.unsent[:size]))
            del stream.unsent[:size]
        if stream.is_complete:
            if stream.trailers:
                fields = list(_select_fields(stream.trailers))
                machine.send_headers(number, fields, end_stream=True)
            else:
                machine.end_stream(number)
            del self._streams[number]

    def _reset(self, number: int) -> None:
        if self._streams.pop(number, None) is not None:
            self._machine.reset_stream(number, ErrorCodes.INTERNAL_ERROR)
            self._send()


def _to_request(stream: _Stream, origin: str) -> Request:
    """Return a request by absolute URL; fields beginning with `:` became its line."""
    pseudo = {name: value for name, value in stream.headers if name.startswith(":")}
    fields = [(name, value) for name, value in stream.headers if not name.startswith(":")]
    names = {name for name, _ in fields}
    cookies = [value for name, value in fields if name == "cookie"]
    if len(cookies) > 1:  # RFC 9113 8.2.3
        fields = [each for each in fields if each[0] != "cookie"]
        fields.append(("cookie", "; ".join(cookies)))
    if "host" not in names:
        fields.insert(0, ("host", pseudo.get(":authority") or origin.partition("://")[2]))
    if "content-length" not in names and stream.body:
        fields.append(("content-length", str(len(stream.body))))
    url = origin + pseudo.get(":path", "/")
    return Request(
        method=pseudo[":method"], url=url, headers=tuple(fields), body=bytes(stream.body)
    )


def _has_status_of_grpc(headers: Headers) -> bool:
    """Whether a head is all of an answer: of a failed call, which gRPC calls Trailers-Only.

    Clients of gRPC refuse it if an empty DATA frame follows.
    """
    return any(name.lower() == "grpc-status" for name, _ in headers)


def _select_fields(headers: Headers) -> Iterable[tuple[str, str]]:
    """Yield the fields that HTTP/2 allows, in lower case (RFC 9113 8.2)."""
    for name, value in headers:
        if name.lower() not in _HOP_BY_HOP:
            yield name.lower(), value
