"""Redaction buffer: the unwritten text of a response, with some context before it."""

from collections import deque
from collections.abc import Mapping
from typing import Protocol

type SpanReplacement = tuple[int, int, bytes]
"""Start, stop and the replacement, of the same length."""
type EventTexts = Mapping[bytes, bytes]
"""The end of the text that earlier events delivered, by the name of its field."""

_CONTEXT = 320
"""Bytes of text before what is not yet written: a name of a secret, and what leads to its value.

An event of 200 bytes delivers three letters, so of a stream that much joined text is kept too.
"""
_EVENT = 8192


class SecretFinder(Protocol):
    """Finds secrets; implemented by `SecretScanner`."""

    def find_spans(
        self, data: bytes, *, events: EventTexts | None = None, final: bool = True
    ) -> list[SpanReplacement]: ...
    def find_open_spans(
        self, data: bytes, *, events: EventTexts | None
    ) -> tuple[list[SpanReplacement], int]: ...
    def join_event_texts(self, data: bytes, before: EventTexts) -> EventTexts: ...


def replace_spans(data: bytes, spans: list[SpanReplacement]) -> bytes:
    """Return the data with each span replaced; spans are in order and do not overlap."""
    pieces, at = [], 0
    for start, stop, instead in spans:
        pieces += [data[at:start], instead]
        at = stop
    return b"".join([*pieces, data[at:]])


class RedactionBuffer:
    """A growing text that is searched as it grows, and can be taken up to `safe`."""

    def __init__(self, finder: SecretFinder, *, stream: bool, messages: bool) -> None:
        self._finder = finder
        self._events: EventTexts | None = {} if stream else None
        self._begins: deque[int] | None = deque() if messages else None
        self._text = self._clean = b""
        self._base = 0
        self._found: list[SpanReplacement] = []
        self.safe = self.end = self._taken = 0
        self.changed = False

    def add(self, data: bytes) -> None:
        """Append the next text."""
        if self._begins is not None:
            self._begins.append(self.end)
        self._text += data
        self.end += len(data)
        spans, end = self._finder.find_open_spans(self._text, events=self._events)
        self._set_spans(spans)
        self.safe = self._base + end

    def finish(self) -> None:
        """End the text: whatever could have begun a secret is final."""
        if self.safe < self.end:
            self._set_spans(self._finder.find_spans(self._text, events=self._events))
            self.safe = self.end

    def _set_spans(self, spans: list[SpanReplacement]) -> None:
        self._found, self._clean = spans, self._text
        if spans:
            self._apply_spans()

    def _apply_spans(self) -> None:
        written = self._taken - self._base
        ahead = [
            (max(start, written), stop, instead[max(written - start, 0) :])
            for start, stop, instead in self._found
            if stop > written
        ]
        self._clean = replace_spans(self._text, ahead)
        self.changed = self.changed or bool(ahead)

    def take(self, stop: int) -> bytes:
        """Return the redacted text up to `stop`."""
        clean = self._clean[self._taken - self._base : stop - self._base]
        self._taken = stop
        return clean

    def forget(self) -> None:
        """Drop text far before the part already taken."""
        at = self._taken - self._base
        keep = max(0, at - _CONTEXT)
        if self._events is not None:
            keep = max(self._find_event_start(keep), at - _EVENT, 0)
        if not keep:
            return
        if self._events is not None:
            texts = self._finder.join_event_texts(self._text[:keep], self._events)
            ends = {name: text[-_CONTEXT:] for name, text in texts.items()}
            self._events = {**self._events, **ends}
        for start, stop, _ in self._found:
            if start < keep < stop:
                keep = start
        self._text, self._clean = self._text[keep:], self._clean[keep:]
        self._found = [(a - keep, b - keep, c) for a, b, c in self._found if a >= keep]
        self._base += keep

    def _find_event_start(self, before: int) -> int:
        """Return the offset of the event or message that contains `before`."""
        if self._begins is None:
            # A line, as no fragment spans two, and events of some servers end in other ways.
            return self._text.rfind(b"\n", 0, before) + 1
        while len(self._begins) > 1 and self._begins[1] - self._base <= before:
            self._begins.popleft()
        return self._begins[0] - self._base if self._begins else 0
