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
from typing import Protocol

from traces import recode
from traces.model import Chunk, Headers, header

type Span = tuple[int, int, bytes]
"""Start, stop and what is to stand there instead, of the same length."""

_CONTEXT = 64
_EVENT = 8192


class Finder(Protocol):
    """Knows what a secret is; a `Redactor`."""

    def spans(self, data: bytes, *, stream: bool = False, final: bool = True) -> list[Span]: ...
    def unfinished(self, data: bytes, *, stream: bool = False) -> int: ...


def bent(data: bytes, spans: list[Span]) -> bytes:
    """The data with each span replaced; spans are in order and do not overlap."""
    pieces, at = [], 0
    for start, stop, instead in spans:
        pieces += [data[at:start], instead]
        at = stop
    return b"".join([*pieces, data[at:]])


class _Said:
    """What an answer said, from a bit before what still waits."""

    def __init__(self, finder: Finder, *, stream: bool, messages: bool) -> None:
        self._finder, self._stream = finder, stream
        self._begins: deque[int] | None = deque() if messages else None
        self._text = self._clean = b""
        self._base = 0
        self._found: list[Span] = []
        self.safe = self.end = self._taken = 0
        self.changed = False

    def add(self, data: bytes) -> None:
        if self._begins is not None:
            self._begins.append(self.end)
        self._text += data
        self.end += len(data)
        self._look(final=False)
        self.safe = self._base + self._finder.unfinished(self._text, stream=self._stream)

    def finish(self) -> None:
        """Nothing more comes: what could have been a beginning is what it is."""
        self._look(final=True)
        self.safe = self.end

    def _look(self, *, final: bool) -> None:
        spans = self._finder.spans(self._text, stream=self._stream, final=final)
        written = self._taken - self._base
        self._found = spans
        ahead = [
            (max(start, written), stop, instead[max(written - start, 0) :])
            for start, stop, instead in spans
            if stop > written
        ]
        self._clean = bent(self._text, ahead)
        self.changed = self.changed or bool(ahead)

    def take(self, stop: int) -> bytes:
        """The clean text up to `stop`; what lies long before it is forgotten."""
        clean = self._clean[self._taken - self._base : stop - self._base]
        self._taken = stop
        return clean

    def forget(self) -> None:
        at = self._taken - self._base
        keep = max(0, at - _CONTEXT)
        if self._stream:
            keep = max(self._event(keep), at - _EVENT, 0)
        for start, stop, _ in self._found:
            if start < keep < stop:
                keep = start
        self._text, self._clean = self._text[keep:], self._clean[keep:]
        self._found = [(a - keep, b - keep, c) for a, b, c in self._found if a >= keep]
        self._base += keep

    def _event(self, before: int) -> int:
        """Where the event or message begins that stands there."""
        if self._begins is None:
            return self._text.rfind(b"\n\n", 0, before)
        while len(self._begins) > 1 and self._begins[1] - self._base <= before:
            self._begins.popleft()
        return self._begins[0] - self._base if self._begins else 0


@dataclass(slots=True)
class _Held:
    chunk: Chunk
    stop: int
    clean: bytes = b""


class Stream:
    """The chunks of one answer on their way to the tape; `messages`: each chunk is a message."""

    def __init__(self, finder: Finder, headers: Headers, *, messages: bool = False) -> None:
        kind = (header(headers, "content-type") or "").lower()
        stream = messages or "event-stream" in kind or "json-seq" in kind or "ndjson" in kind
        self._said = _Said(finder, stream=stream, messages=messages)
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
        self._queue.append(_Held(chunk, self._said.end))
        return self._free()

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
