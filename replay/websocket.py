"""A WebSocket of the agent's in bytes: its messages as turns, the server's messages as frames.

No I/O here. Reading is in `turns`; writing is one frame a message, never compressed: a server
may decline permessage-deflate (RFC 7692 5), and how a message was packed is transport. Answers
are those that `traces.websocket` describes.
"""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from traces.model import Headers, Request, Response, header
from traces.websocket import BINARY, TEXT, binary, close

_KEY = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""RFC 6455 1.3."""
_MOST = 123
"""Bytes of a reason that fit into a close frame."""


def accepted(request: Request, answer: Response) -> Response:
    """The recorded answer to an upgrade, for the key of this request (RFC 6455 4.2.2)."""
    key = header(request.headers, "sec-websocket-key") or ""
    accept = base64.b64encode(hashlib.sha1((key + _KEY).encode("latin-1")).digest()).decode()
    headers = tuple(
        (name, accept if name.lower() == "sec-websocket-accept" else value)
        for name, value in answer.headers
        if name.lower() != "sec-websocket-extensions"
    )
    return replace(answer, headers=headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A message of the agent, and when it was whole."""

    binary: bool
    data: bytes
    started: float

    @property
    def method(self) -> str:
        return BINARY if self.binary else TEXT


@dataclass(frozen=True, slots=True)
class Closed:
    """The agent closed, or spoke no WebSocket: `answer` is the last frame it gets."""

    answer: bytes


@dataclass(slots=True)
class Frames:
    """How an answer of messages stands on the wire; the counterpart of `h1.Framing`.

    `head` is that of the upgrade, whose answer has messages of its own, and empty for a turn.
    """

    kinds: Iterator[bool]
    head: bytes = b""
    stays: bool = True
    body: str = field(default="messages", init=False)

    def before(self, size: int) -> bytes:
        """The head of one message."""
        return _head(2 if next(self.kinds, False) else 1, size)

    def after(self) -> bytes:
        return b""

    def end(self, trailers: Headers) -> bytes:
        """The close of the server, where it closed."""
        closed = close(Response(status=101, trailers=trailers))
        if closed is None:
            return b""
        self.stays = False
        code, why = closed
        said = b"" if code == 1005 else code.to_bytes(2) + why.encode()[:_MOST]
        return _head(8, len(said)) + said


def frames(answer: Response, head: bytes = b"") -> Frames:
    """The framing of an answer; of one that is yet to come all messages are text."""
    return Frames(iter(binary(answer)), head)


def _head(opcode: int, size: int) -> bytes:
    """A whole, unmasked message (RFC 6455 5.2)."""
    first = bytes((0x80 | opcode,))
    if size < 126:
        return first + bytes((size,))
    return first + (b"\x7e" + size.to_bytes(2) if size < 1 << 16 else b"\x7f" + size.to_bytes(8))
