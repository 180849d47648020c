"""One value in a text, with its offsets."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from faults.jsonpath import JsonLocation

type NodeKind = Literal["object", "array", "text", "number", "bool", "null", "date", "id"]

MAX_NESTING = 64
"""Nested containers; deeper ones are read as plain text."""


class DocumentNode(Struct, frozen=True, kw_only=True):
    """A value: `text[start:stop]` as written; JSON strings without their quotes."""

    kind: NodeKind
    path: JsonLocation
    start: int
    stop: int
    text: str = ""
    """A scalar as text, unescaped; empty for containers."""
    items: tuple["DocumentNode", ...] = ()
    """Members, items or cells; for a text the JSON or the values in it."""
    key: tuple[int, int, int] | None = None
    """Offsets of a member's name: opening quote, start and end without quotes."""
    line: tuple[int, int] | None = None
    """Range of the complete line, end of line included, of a table row or JSON line."""
    quote_depth: int = 0
    """Number of enclosing JSON strings, each of which adds escapes; its own quotes not counted."""
    literal: tuple[int, int] | None = None
    """Range of a JSON string with its quotes."""
    is_whole: bool = True
    """False for a value inside a longer text."""

    @property
    def span(self) -> tuple[int, int]:
        """The range of the value, with its quotes if it has any, without its name."""
        return self.literal or (self.start, self.stop)

    @property
    def begin(self) -> int:
        """The start offset, including name and quotes."""
        return self.key[0] if self.key else self.span[0]

    @property
    def is_cell(self) -> bool:
        """True for a table cell, which has no name of its own and no quotes."""
        return self.is_whole and bool(self.path) and isinstance(self.path[-1], str) and not self.key

    @property
    def is_nested_json(self) -> bool:
        """True for a text that contains JSON, whose values count in its place."""
        return bool(self.items) and self.kind == "text" and not self.items[0].text

    @property
    def name(self) -> str:
        """The last name in its path: `total` for `$.orders[2].total`."""
        return next((step for step in reversed(self.path) if isinstance(step, str)), "")

    @property
    def path_pattern(self) -> tuple[str | None, ...]:
        """Its path with None for each index: the same for all rows of a list."""
        return tuple(step if isinstance(step, str) else None for step in self.path)

    @property
    def value(self) -> object:
        """The parsed value, with JSON in strings parsed too; numbers as their text."""
        match self.kind:
            case "object":
                return {item.path[-1]: item.value for item in self.items}
            case "array":
                return [item.value for item in self.items]
            case "null":
                return None
            case "bool":
                return self.text == "true"
            case "text" if self.is_nested_json:
                return self.items[0].value
            case _:
                return self.text

    def walk(self) -> Iterator["DocumentNode"]:
        """Yield the node and all nodes inside it, in text order."""
        yield self
        for item in self.items:
            yield from item.walk()


class NestedText(Struct, frozen=True):
    """A text inside another one: its characters, and their offsets in the outermost text."""

    text: str
    start: int = 0
    offsets: tuple[int, ...] | None = None
    """One per character, and the end; None if they follow `start` one by one."""
    quote_depth: int = 0

    def to_outer_offset(self, at: int) -> int:
        """Return the offset of a character in the outermost text."""
        return self.start + at if self.offsets is None else self.offsets[at]
