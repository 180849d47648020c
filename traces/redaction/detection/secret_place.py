"""What a place of secrets is: a beginning, the value, and what has to follow it."""

import re
from collections.abc import Callable

from msgspec import Struct

LONGEST_PLACED = 16_384
QUOTE = rb"\\{0,15}[\"'`]"
SPACE = rb"(?:[ \t\r\n]|\\{1,15}[nrt])"
TEXT = rb"[^\s\"'`\\]"

_BOUNDS = re.compile(rb"\{(\d+),\d+\}")


class SecretPlace(Struct, frozen=True):
    """A place of secrets: its beginning, one character of the value, bounds, and the rest."""

    beginning: bytes
    character: bytes
    shortest: int
    is_secret: Callable[[bytes], bool]
    after: bytes = b""
    kind: str = "n"
    sign: bytes = b""
    """What the prefilter searches; the beginning if empty."""
    opening: bytes = b""
    """What it searches for a value that may not be complete; the beginning if empty."""

    @property
    def pattern(self) -> bytes:
        """The pattern of the place; its group is the value."""
        return b"%b(%b{%d,%d}+={0,2})%b" % (
            self.beginning, self.character, self.shortest, LONGEST_PLACED, self.after
        )  # fmt: skip

    @property
    def start_pattern(self) -> bytes:
        """A pattern that matches, with no bytes, wherever the beginning does."""
        return b"(?=%b)" % self.beginning

    @property
    def open_pattern(self) -> bytes:
        """The pattern of a place at the end of a text, which may continue."""
        return b"%b(%b{0,%d}+={0,2})\\Z" % (self.beginning, self.character, LONGEST_PLACED)


def widen_pattern(pattern: bytes) -> bytes:
    """Return a pattern without lookarounds and upper bounds: it matches whenever `pattern` does."""
    out, at = bytearray(), 0
    while at < len(pattern):
        if pattern.startswith((b"(?=", b"(?!", b"(?<=", b"(?<!"), at):
            at = _find_group_end(pattern, at)
            continue
        size = 2 if pattern[at] == ord("\\") else 1
        out += pattern[at : at + size]
        at += size
    return _BOUNDS.sub(rb"{\1,}", bytes(out))


def _find_group_end(pattern: bytes, at: int) -> int:
    """Return the offset after the group that begins at `at`; no class holds a parenthesis."""
    depth = 0
    while True:
        if pattern[at] == ord("\\"):
            at += 2
            continue
        depth += {ord("("): 1, ord(")"): -1}.get(pattern[at], 0)
        at += 1
        if not depth:
            return at
