"""Server-sent events, parsed from complete or truncated streams (WHATWG HTML, 9.2.6)."""

import re
from collections.abc import Iterator

from msgspec import Struct


class SseEvent(Struct, frozen=True):
    """One event; `data` is its data lines joined by newlines."""

    name: str
    data: str


def parse_sse_events(stream: bytes) -> Iterator[SseEvent]:
    """Yield the complete events of a stream; text after the last blank line is not one."""
    text = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    *blocks, _ = text.split(b"\n\n")
    for block in blocks:
        name, data = "message", []
        for line in block.decode("utf-8", "replace").split("\n"):
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if key == "event":
                name = value
            elif key == "data":
                data.append(value)
        if data:
            yield SseEvent(name, "\n".join(data))


class SseEventSpan(Struct, frozen=True):
    """Offsets of an event in a stream, and of its data, which is one line."""

    start: int
    stop: int
    data: tuple[int, int]


_EVENT = re.compile(rb"(?:[^\r\n]+(?:\r\n|\n|\r))+(?:\r\n|\n|\r)")
_DATA = re.compile(rb"^data: ?([^\r\n]*)", re.MULTILINE)


def find_sse_event_ends(stream: bytes) -> list[int]:
    """Return the offset after each complete event."""
    return [event.end() for event in _EVENT.finditer(stream)]


def find_sse_event_spans(stream: bytes) -> Iterator[SseEventSpan]:
    """Yield the offsets of each complete event with exactly one data line."""
    for event in _EVENT.finditer(stream):
        data = list(_DATA.finditer(stream, *event.span()))
        if len(data) == 1:
            yield SseEventSpan(*event.span(), data[0].span(1))
