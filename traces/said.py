"""What an answer said, from a bit before what is not written yet."""

from collections import deque
from typing import Protocol

type Span = tuple[int, int, bytes]
"""Start, stop and what is to stand there instead, of the same length."""

_CONTEXT = 64
_EVENT = 8192


class Finder(Protocol):
    """Knows what a secret is; a `Search`."""

    def spans(self, data: bytes, *, stream: bool = False, final: bool = True) -> list[Span]: ...
    def growing(self, data: bytes, *, stream: bool) -> tuple[list[Span], int]: ...


def bent(data: bytes, spans: list[Span]) -> bytes:
    """The data with each span replaced; spans are in order and do not overlap."""
    pieces, at = [], 0
    for start, stop, instead in spans:
        pieces += [data[at:start], instead]
        at = stop
    return b"".join([*pieces, data[at:]])


class Said:
    """A text that grows, is searched as it does, and is taken away as far as it is `safe`."""

    def __init__(self, finder: Finder, *, stream: bool, messages: bool) -> None:
        self._finder, self._stream = finder, stream
        self._begins: deque[int] | None = deque() if messages else None
        self._text = self._clean = b""
        self._base = 0
        self._found: list[Span] = []
        self.safe = self.end = self._taken = 0
        self.changed = False

    def add(self, data: bytes) -> None:
        """Take in what was said next."""
        if self._begins is not None:
            self._begins.append(self.end)
        self._text += data
        self.end += len(data)
        spans, end = self._finder.growing(self._text, stream=self._stream)
        self._see(spans)
        self.safe = self._base + end

    def finish(self) -> None:
        """Nothing more comes: what could have been a beginning is what it is."""
        if self.safe < self.end:
            self._see(self._finder.spans(self._text, stream=self._stream))
            self.safe = self.end

    def _see(self, spans: list[Span]) -> None:
        self._found, self._clean = spans, self._text
        if spans:
            self._bend()

    def _bend(self) -> None:
        written = self._taken - self._base
        ahead = [
            (max(start, written), stop, instead[max(written - start, 0) :])
            for start, stop, instead in self._found
            if stop > written
        ]
        self._clean = bent(self._text, ahead)
        self.changed = self.changed or bool(ahead)

    def take(self, stop: int) -> bytes:
        """The clean text up to `stop`."""
        clean = self._clean[self._taken - self._base : stop - self._base]
        self._taken = stop
        return clean

    def forget(self) -> None:
        """Let go of what lies long before what was taken."""
        at = self._taken - self._base
        keep = max(0, at - _CONTEXT)
        if self._stream:
            keep = max(self._event(keep), at - _EVENT, 0)
        if not keep:
            return
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
