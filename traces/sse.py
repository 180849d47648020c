"""Server-sent events, read from whole or cut streams (WHATWG HTML, 9.2.6)."""

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
