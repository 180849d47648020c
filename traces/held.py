"""An answer redacted while it streams: no secret is written, not even the half of one.

A chunk waits only while what it ends in may be the beginning of a secret; the next chunk, or
the end, sets it free. Chunks keep their number, size and time. What is cut in the middle (a
reset, a killed run) is written redacted if at least 8 bytes of a known secret are there; what
waits when the process is killed was never written at all.

An encoded answer is inflated beside its writing and keeps its very bytes until a secret turns
up; then it begins anew: its chunks are given out once more from the first one, encoded again,
each as far as it went before. Chunks that hold the beginning of a secret waited for it, so
nothing of it is in what was written before.
"""

from collections import deque
from dataclasses import dataclass, replace

from traces import recode
from traces.model import Chunk, Headers, header
from traces.said import Finder, Said

_EVENTS = ("event-stream", "json-seq", "ndjson")
"""Words of content types whose events bring a text bit by bit."""


def brings_events(headers: Headers) -> bool:
    """True for an answer that says a text bit by bit."""
    kind = (header(headers, "content-type") or "").lower()
    return any([each in kind for each in _EVENTS])


@dataclass(slots=True)
class _Held:
    chunk: Chunk
    stop: int
    clean: bytes = b""


class Stream:
    """The chunks of one answer on their way to the tape; `messages`: each chunk is a message."""

    def __init__(self, finder: Finder, headers: Headers, *, messages: bool = False) -> None:
        stream = messages or brings_events(headers)
        self._said = Said(finder, stream=stream, messages=messages)
        self._names = recode.names(headers)
        self._decoding = recode.decoding(self._names)
        self._encoding: recode.Encoding | None = None
        self._queue: deque[_Held] = deque()
        self._past: list[_Held] = []
        self.length = 0
        """How many bytes were given out since the answer began (anew)."""
        self.anew = False
        """True where the chunks just returned are to stand in place of all before them."""

    @property
    def changed(self) -> bool:
        """True once something had to be replaced."""
        return self._said.changed

    @property
    def encoded_again(self) -> bool:
        """True where the body has another length than the one that came."""
        return self._encoding is not None

    def chunk(self, chunk: Chunk) -> list[Chunk]:
        """Take in a chunk; returns those that can be written now."""
        data = chunk.data
        if self._decoding is not None:
            try:
                data = self._decoding.feed(data)
            except recode.BROKEN:
                # Not what its head says: from here on there is nothing to read in it.
                self._decoding, data = _Silent(), b""
        self._said.add(data)
        if self._decoding is None and not self._queue and self._said.safe == self._said.end:
            return [self._straight(chunk)]
        self._queue.append(_Held(chunk, self._said.end))
        return self._free()

    def _straight(self, chunk: Chunk) -> Chunk:
        """The chunk as it goes on where nothing waits, which is almost always."""
        clean = self._said.take(self._said.end)
        self._said.forget()
        self.length += len(clean)
        changed = self._said.changed and clean != chunk.data
        return replace(chunk, data=clean) if changed else chunk

    def done(self) -> list[Chunk]:
        """No more chunks come; returns those that waited."""
        self._said.finish()
        return self._free(ended=True)

    def _free(self, *, ended: bool = False) -> list[Chunk]:
        self.anew = self._decoding is not None and self.changed and self._encoding is None
        out = []
        if self.anew:
            self.length = 0
            self._encoding = recode.encoding(self._names)
            out = [self._given(held) for held in self._past]
            self._past = []
        # The end of an encoding needs a chunk to stand in, so the last one always waits.
        keep = 1 if self._encoding is not None and not ended else 0
        while len(self._queue) > keep:
            held = self._queue[0]
            if held.stop > self._said.safe:
                break
            self._queue.popleft()
            held.clean = self._said.take(held.stop)
            out.append(self._given(held, last=ended and not self._queue))
        self._said.forget()
        self.length += sum(len(chunk.data) for chunk in out)
        return out

    def _given(self, held: _Held, *, last: bool = False) -> Chunk:
        if self._encoding is not None:
            data = self._encoding.feed(held.clean)
            if last and self._decoding is not None and self._decoding.finished:
                data += self._encoding.finish()
            return replace(held.chunk, data=data)
        if self._decoding is not None:
            self._past.append(held)
            return held.chunk
        same = held.clean == held.chunk.data
        return held.chunk if same else replace(held.chunk, data=held.clean)


class _Silent:
    finished = False

    def feed(self, data: bytes) -> bytes:
        return b""
