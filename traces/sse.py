"""Server-sent events, read from whole or cut streams (WHATWG HTML, 9.2.6)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `data` is its data lines joined by newlines."""

    name: str
    data: str


def events(stream: bytes) -> Iterator[Event]:
    """The complete events of a stream; what follows the last blank line is not one."""
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
            yield Event(name, "\n".join(data))


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands in a stream, and its data, if that is one line, in it."""

    start: int
    stop: int
    data: tuple[int, int]


_EVENT = re.compile(rb"(?:[^\r\n]+(?:\r\n|\n|\r))+(?:\r\n|\n|\r)")
_DATA = re.compile(rb"^data: ?([^\r\n]*)", re.MULTILINE)


def ends(stream: bytes) -> list[int]:
    """The offset behind each complete event."""
    return [found.end() for found in _EVENT.finditer(stream)]


def places(stream: bytes) -> Iterator[Place]:
    """Where each complete event stands that has one line of data."""
    for found in _EVENT.finditer(stream):
        data = list(_DATA.finditer(stream, *found.span()))
        if len(data) == 1:
            yield Place(*found.span(), data[0].span(1))
