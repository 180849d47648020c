"""What stands where a secret stood: text of its length that says its class and its number."""

import re

from traces import patterns

PLACEHOLDER = re.compile(rb"(?:REDACTED|RD)[a-z]\d+x*Z")


def placeholder(tag: str, length: int) -> bytes:
    """What stands where a secret stood: letters and digits, of the same length."""
    for word in ("REDACTED", "RD", ""):
        if (rest := length - len(word) - len(tag) - 1) >= 0:
            return f"{word}{tag}{'x' * rest}Z".encode()
    return b"x" * length


def stretched(instead: bytes, length: int) -> bytes:
    """A placeholder of `length` bytes, for a secret whose spelling is longer than it is."""
    return instead[:-1] + b"x" * (length - len(instead)) + instead[-1:]


class Names:
    """The secrets seen so far, each with its class and its number among those of its class.

    Numbers follow first occurrence, so equal secrets stay equal and different ones different.
    """

    def __init__(self) -> None:
        self._tags: dict[bytes, str] = {}
        self._counts: dict[str, int] = {}

    def instead(self, value: bytes, length: int, kind: str | None = None) -> bytes:
        """What is to stand in place of a secret; its class is that of its look unless given."""
        if (tag := self._tags.get(value)) is None:
            kind = kind or next((kind for _, _, kind in patterns.found(value, value)), "k")
            self._counts[kind] = self._counts.get(kind, 0) + 1
            tag = self._tags[value] = f"{kind}{self._counts[kind]}"
        return placeholder(tag, length)
