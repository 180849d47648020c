"""What stands where a secret stood: text of its length that says its class and its number."""

import os
import re
from collections.abc import Iterable

from traces import patterns
from traces.redactions import SALT, KnownSecrets, Recognizer, Redaction, is_strong, mark

PLACEHOLDER = re.compile(rb"(?:REDACTED|RD)([a-z]\d+)x*Z")
"""Its group is the tag: the class and the number."""


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

    Numbers follow first occurrence, so equal secrets stay equal and different ones different. A
    secret of the recording that is replayed keeps the tag it has there, whatever comes first; one
    that the recording does not hold gets a number that stands for nothing there.
    """

    def __init__(
        self, known: KnownSecrets | None = None, recorded: Iterable[Redaction] = ()
    ) -> None:
        recorded = tuple(recorded)
        self._known = KnownSecrets() if known is None else known
        self._recognizer = Recognizer(recorded, self._known.key)
        self._salt = os.urandom(SALT)
        self._tags: dict[bytes, str] = {}
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        for each in recorded:
            kind, number = each.tag[0], int(each.tag[1:])
            self._counts[kind] = max(self._counts.get(kind, 0), number)
        self.unwritten = list(recorded)
        """Redactions that are not on the tape of this run yet."""

    def instead(self, value: bytes, length: int, kind: str | None = None) -> bytes:
        """What is to stand in place of a secret; its class is that of its look unless given."""
        if (tag := self._tags.get(value)) is None:
            tag = self._tags[value] = self._recorded(value) or self._new(value, kind)
            self._taken.add(tag)
        return placeholder(tag, length)

    def _recorded(self, value: bytes) -> str | None:
        tag = self._recognizer.by_value(value)
        if tag is None and (names := self._names(value)):
            tag = self._recognizer.by_name(names)
        return None if tag in self._taken else tag

    def _new(self, value: bytes, kind: str | None) -> str:
        kind = kind or next((kind for _, _, kind in patterns.found(value, value)), "k")
        self._counts[kind] = self._counts.get(kind, 0) + 1
        tag, keyed = f"{kind}{self._counts[kind]}", not is_strong(value, kind)
        found = Redaction(
            tag=tag,
            salt=self._salt,
            mark=mark(value, self._salt, self._known.key if keyed else b""),
            keyed=keyed,
            names=self._names(value),
        )
        self.unwritten.append(found)
        return tag

    def _names(self, value: bytes) -> tuple[str, ...]:
        return self._known.names.get(value.decode("utf-8", "surrogateescape"), ())
