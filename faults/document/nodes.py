"""One value in a text, and where it stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from faults.query import Path

type Kind = Literal["object", "array", "text", "number", "bool", "null", "date", "id"]

NESTED = 64
"""Containers in containers; what is deeper is read as plain text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A value: `text[start:stop]` as written, for texts in JSON without their quotes."""

    kind: Kind
    path: Path
    start: int
    stop: int
    said: str = ""
    """A scalar as text, escapes undone; empty for containers."""
    items: tuple["Node", ...] = ()
    """Members, items or cells; of a text the JSON or the words in it."""
    key: tuple[int, int, int] | None = None
    """Where the name of a member begins with its quote, and begins and ends without."""
    line: tuple[int, int] | None = None
    """The whole line, end of line included, of a row in a table or in lines of JSON."""
    quoted: int = 0
    """How many JSON strings it stands in, each of which escapes; its own quotes not counted."""
    literal: tuple[int, int] | None = None
    """A JSON string with its quotes."""
    whole: bool = True
    """False for a word in a longer text."""

    @property
    def span(self) -> tuple[int, int]:
        """Where it stands, with its quotes if it has any, without its name."""
        return self.literal or (self.start, self.stop)

    @property
    def begin(self) -> int:
        """Where it begins, with its name and quotes."""
        return self.key[0] if self.key else self.span[0]

    @property
    def cell(self) -> bool:
        """True for a cell of a table, which has no name of its own and no quotes."""
        return self.whole and bool(self.path) and isinstance(self.path[-1], str) and not self.key

    @property
    def opened(self) -> bool:
        """True for a text that holds JSON, whose values count in its place."""
        return bool(self.items) and self.kind == "text" and not self.items[0].said

    @property
    def name(self) -> str:
        """The nearest name on the way to it: `total` for `$.orders[2].total`."""
        return next((step for step in reversed(self.path) if isinstance(step, str)), "")

    @property
    def general(self) -> tuple[str | None, ...]:
        """Its path with None for each index: the same for all rows of a list."""
        return tuple(step if isinstance(step, str) else None for step in self.path)

    @property
    def value(self) -> object:
        """What a parser would make of it, JSON in strings opened; numbers as their text."""
        match self.kind:
            case "object":
                return {item.path[-1]: item.value for item in self.items}
            case "array":
                return [item.value for item in self.items]
            case "null":
                return None
            case "bool":
                return self.said == "true"
            case "text" if self.opened:
                return self.items[0].value
            case _:
                return self.said

    def walk(self) -> Iterator["Node"]:
        """It and all that stands in it, in the order of the text."""
        yield self
        for item in self.items:
            yield from item.walk()


@dataclass(frozen=True, slots=True)
class Inner:
    """A text inside another one: its characters, and where each stands in the outermost."""

    text: str
    start: int = 0
    spots: tuple[int, ...] | None = None
    """One more than it has characters; None where they follow `start` one by one."""
    quoted: int = 0

    def spot(self, at: int) -> int:
        """The place of a character in the outermost text."""
        return self.start + at if self.spots is None else self.spots[at]
