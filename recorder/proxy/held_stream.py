"""The part of a held MCP stream that the agent gets before the response is changed."""

from collections.abc import Iterable
from copy import replace

from msgspec import Struct, field

from traces.bodies.sse import find_sse_event_ends
from traces.dialects import mcp
from traces.model import Chunk, Response


class HeldMcpStream(Struct):
    """A stream of events whose response is held back; what precedes it is passed on."""

    head: Response
    is_listening: bool = False
    """Whether no request waits for it, so that the agent gets its head at once."""
    passed: int = 0
    """How many bytes the agent has."""
    _kept: bytearray = field(default_factory=bytearray)
    """Bytes after them: an incomplete event, or the response and what follows it."""
    has_response: bool = False
    _chunks: list[Chunk] = field(default_factory=list)

    def take(self, chunk: Chunk) -> bytes:
        """Take the next bytes of the stream; return those that are passed on now."""
        self._chunks.append(chunk)
        self._kept += chunk.data
        if self.has_response or not any(end in chunk.data for end in (b"\n", b"\r")):
            return b""
        stream = bytes(self._kept)
        length = mcp.find_interim_end(stream)
        self.has_response = bool(find_sse_event_ends(stream[length:]))
        if not (self.passed or self.is_listening or b'"jsonrpc"' in stream[:length]):
            return b""  # an event with an id alone asks nothing, and the head may be changed
        self.passed += length
        del self._kept[:length]
        return stream[:length]

    def to_response(self, ended: float) -> Response:
        """Return the stream so far as a whole."""
        return replace(self.head, chunks=tuple(self._chunks), ended=ended)


def drop_first_bytes(chunks: Iterable[Chunk], count: int) -> tuple[Chunk, ...]:
    """Return the chunks without the first `count` bytes; the numbers of chunks stay the same."""
    left = []
    for chunk in chunks:
        left.append(replace(chunk, data=chunk.data[count:]) if count else chunk)
        count = max(0, count - len(chunk.data))
    return tuple(left)
