"""Redaction of a response while it streams: not even part of a secret is written.

A chunk waits only while its end may be the beginning of a secret; the next chunk, or the end,
releases it. Chunks keep their number, size and time. A truncated response (a reset, a killed run)
may end inside a known secret: that part is redacted if it has at least 8 bytes. Waiting chunks of
a killed process are never written.

An encoded response is decoded in parallel and written unchanged until a secret is found; then it
restarts: its chunks are returned again from the first one, encoded again, each decoding to as much
as it did before. Chunks with the beginning of a secret waited for it, so no part of it was written
before.
"""

from collections import deque
from copy import replace

from msgspec import Struct

from traces.bodies import streaming_encoding
from traces.model import Chunk, Headers, find_header
from traces.redaction.text_buffer import RedactionBuffer, SecretFinder

_EVENTS = ("event-stream", "json-seq", "ndjson")
"""Words of content types whose events deliver a text in fragments."""


def has_event_stream_type(headers: Headers) -> bool:
    """True for a response that delivers a text in fragments."""
    kind = (find_header(headers, "content-type") or "").lower()
    return any([each in kind for each in _EVENTS])


class _PendingChunk(Struct):
    chunk: Chunk
    stop: int
    clean: bytes = b""


class RedactionStream:
    """The chunks of one response on their way to the tape; `messages`: each chunk is a message."""

    def __init__(self, finder: SecretFinder, headers: Headers, *, messages: bool = False) -> None:
        stream = messages or has_event_stream_type(headers)
        self._said = RedactionBuffer(finder, stream=stream, messages=messages)
        self._names = streaming_encoding.parse_content_encodings(headers)
        self._decoding = streaming_encoding.make_stream_decoder(self._names)
        self._encoding: streaming_encoding.StreamEncoder | None = None
        self._queue: deque[_PendingChunk] = deque()
        self._past: list[_PendingChunk] = []
        self.length = 0
        """Number of bytes returned since the response began or restarted."""
        self.anew = False
        """True if the chunks just returned replace all earlier ones."""

    @property
    def has_changes(self) -> bool:
        """True once something was replaced."""
        return self._said.changed

    @property
    def is_reencoded(self) -> bool:
        """True if the body was encoded again, so that its length may differ."""
        return self._encoding is not None

    def chunk(self, chunk: Chunk) -> list[Chunk]:
        """Add a chunk; return the chunks that can be written now."""
        data = chunk.data
        if self._decoding is not None:
            try:
                data = self._decoding.feed(data)
            except streaming_encoding.DECODING_ERRORS:
                if self._said.end:  # the rest cannot be decoded
                    self._decoding, data = _DiscardingDecoder(), b""
                else:  # it is not in the declared encoding
                    self._decoding = None
        self._said.add(data)
        if self._decoding is None and not self._queue and self._said.safe == self._said.end:
            return [self._pass_through(chunk)]
        self._queue.append(_PendingChunk(chunk, self._said.end))
        return self._release_chunks()

    def _pass_through(self, chunk: Chunk) -> Chunk:
        """Return the chunk at once if none is waiting, which is almost always."""
        clean = self._said.take(self._said.end)
        self._said.forget()
        self.length += len(clean)
        changed = self._said.changed and clean != chunk.data
        return replace(chunk, data=clean) if changed else chunk

    def done(self) -> list[Chunk]:
        """End the stream; return the chunks that waited."""
        self._said.finish()
        return self._release_chunks(ended=True)

    def _release_chunks(self, *, ended: bool = False) -> list[Chunk]:
        self.anew = self._decoding is not None and self.has_changes and self._encoding is None
        out = []
        if self.anew:
            self.length = 0
            self._encoding = streaming_encoding.make_stream_encoder(self._names)
            out = [self._encode_chunk(pending) for pending in self._past]
            self._past = []
        # The trailer of an encoding goes into the last chunk, so that one always waits.
        keep = 1 if self._encoding is not None and not ended else 0
        while len(self._queue) > keep:
            pending = self._queue[0]
            if pending.stop > self._said.safe:
                break
            self._queue.popleft()
            pending.clean = self._said.take(pending.stop)
            out.append(self._encode_chunk(pending, last=ended and not self._queue))
        self._said.forget()
        self.length += sum(len(chunk.data) for chunk in out)
        return out

    def _encode_chunk(self, held: _PendingChunk, *, last: bool = False) -> Chunk:
        if self._encoding is not None:
            data = self._encoding.feed(held.clean)
            if last and self._decoding is not None and self._decoding.finished:
                data += self._encoding.finish()
            return replace(held.chunk, data=data)
        if self._decoding is not None:
            self._past.append(held)
            return held.chunk
        is_unchanged = held.clean == held.chunk.data
        return held.chunk if is_unchanged else replace(held.chunk, data=held.clean)


class _DiscardingDecoder:
    finished = False

    def feed(self, data: bytes) -> bytes:
        return b""
