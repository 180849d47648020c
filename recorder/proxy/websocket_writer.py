"""WebSocket framing for the agent, without I/O: its messages as turns, the server's as frames.

Reading is in `websocket_reader`; writing is one frame per message, never compressed: a server may
decline permessage-deflate (RFC 7692 5), and message compression is a transport detail. Answers have
the form of `traces.bodies.websocket`.
"""

import base64
import hashlib
from collections.abc import Iterator
from copy import replace
from dataclasses import dataclass, field

from msgspec import Struct

from traces.bodies.websocket import (
    BINARY_METHOD,
    TEXT_METHOD,
    read_binary_flags,
    read_websocket_close,
)
from traces.model import Headers, Request, Response, find_header

_ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455 1.3."""
_MAX_REASON_BYTES = 123
"""Maximum bytes of a reason in a close frame."""


def accept_upgrade(request: Request, answer: Response) -> Response:
    """Return the recorded upgrade answer with this request's accept key (RFC 6455 4.2.2)."""
    key = find_header(request.headers, "sec-websocket-key") or ""
    accept = base64.b64encode(
        hashlib.sha1((key + _ACCEPT_GUID).encode("latin-1")).digest()
    ).decode()
    headers = tuple(
        (name, accept if name.lower() == "sec-websocket-accept" else value)
        for name, value in answer.headers
        if name.lower() != "sec-websocket-extensions"
    )
    return replace(answer, headers=headers)


class AgentWebSocketMessage(Struct, frozen=True, kw_only=True):
    """A message of the agent, and the time it was complete."""

    binary: bool
    data: bytes
    started: float

    @property
    def method(self) -> str:
        return BINARY_METHOD if self.binary else TEXT_METHOD


class AgentWebSocketClose(Struct, frozen=True):
    """The agent closed, or violated the protocol: `answer` is the last frame it gets."""

    answer: bytes


@dataclass(slots=True)
class WebSocketFraming:
    """The framing of an answer of messages; the counterpart of `http1.ResponseFraming`.

    `head` is the head of an upgrade's answer, which has messages of its own, and empty for a turn.
    """

    kinds: Iterator[bool]
    head: bytes = b""
    stays: bool = True
    body: str = field(default="messages", init=False)

    def before(self, size: int) -> bytes:
        """Return the frame header of one message."""
        return _encode_frame_head(2 if next(self.kinds, False) else 1, size)

    def after(self) -> bytes:
        return b""

    def end(self, trailers: Headers) -> bytes:
        """Return the server's close frame, if it closed."""
        closed = read_websocket_close(Response(status=101, trailers=trailers))
        if closed is None:
            return b""
        self.stays = False
        code, reason = closed
        payload = b"" if code == 1005 else code.to_bytes(2) + reason.encode()[:_MAX_REASON_BYTES]
        return _encode_frame_head(8, len(payload)) + payload


def choose_websocket_framing(answer: Response, head: bytes = b"") -> WebSocketFraming:
    """Choose the framing of an answer; if that is not complete yet, all messages are text."""
    return WebSocketFraming(iter(read_binary_flags(answer)), head)


def _encode_frame_head(opcode: int, size: int) -> bytes:
    """Return the header of a complete, unmasked message (RFC 6455 5.2)."""
    first = bytes((0x80 | opcode,))
    if size < 126:
        return first + bytes((size,))
    return first + (b"\x7e" + size.to_bytes(2) if size < 1 << 16 else b"\x7f" + size.to_bytes(8))
