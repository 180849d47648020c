"""Placeholders: text of a secret's length that replaces it and names its class and number."""

import os
import re
from collections.abc import Iterable

from traces.redaction.detection import patterns
from traces.redaction.detection.prefilter import find_possible_formats
from traces.redaction.fingerprints import (
    SALT_BYTES,
    KnownSecrets,
    RedactionRecord,
    SecretRecognizer,
    fingerprint_secret,
    is_strong_secret,
    mark_key,
)

PLACEHOLDER = re.compile(rb"(?:REDACTED|RD)([a-z]\d+)x*Z")
"""Its group is the tag: the class and the number."""


def make_placeholder(tag: str, length: int) -> bytes:
    """Return a placeholder of letters and digits with this tag and length."""
    for word in ("REDACTED", "RD", ""):
        if (rest := length - len(word) - len(tag) - 1) >= 0:
            return f"{word}{tag}{'x' * rest}Z".encode()
    return b"x" * length


def stretch_placeholder(instead: bytes, length: int) -> bytes:
    """Extend a placeholder to `length` bytes, for a secret whose escaped form is longer."""
    return instead[:-1] + b"x" * (length - len(instead)) + instead[-1:]


class PlaceholderRegistry:
    """The secrets seen so far, each with its class and its number in that class.

    Numbers follow first occurrence, so equal secrets have equal placeholders and different ones
    different. A secret of the replayed recording keeps its tag from there, whatever comes first;
    one that the recording does not contain gets a number that is unused there.
    """

    def __init__(
        self,
        known: KnownSecrets | None = None,
        recorded: Iterable[RedactionRecord] = (),
        seen: Iterable[RedactionRecord] = (),
    ) -> None:
        recorded, seen = tuple(recorded), tuple(seen)
        self._known = KnownSecrets() if known is None else known
        self._recognizer = SecretRecognizer(recorded, self._known.key, seen)
        self._salt = os.urandom(SALT_BYTES)
        self._tags: dict[bytes, str] = {}
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        for each in (*recorded, *seen):
            kind, number = each.tag[0], int(each.tag[1:])
            self._counts[kind] = max(self._counts.get(kind, 0), number)
        self.unwritten = [*recorded, *seen]
        """Redactions that are not on the tape of this run yet."""

    def placeholder_for(
        self, value: bytes, length: int, kind: str | None = None, *, has_tag: bool = False
    ) -> bytes:
        """Return the placeholder of a secret; its form decides its class unless `kind` is given.

        `has_tag`: longer than `length` if there is no room for a tag, so that short values differ.
        """
        if (tag := self._tags.get(value)) is None:
            kind = kind or _classify_secret(value)
            tag = self._tags[value] = self._find_recorded_tag(value, kind) or self._assign_new_tag(
                value, kind
            )
            self._taken.add(tag)
        return make_placeholder(tag, max(length, len(tag) + 3) if has_tag else length)

    def _find_recorded_tag(self, value: bytes, kind: str) -> str | None:
        tag = self._recognizer.find_by_value(value)
        if tag is None and (names := self._find_names(value)):
            recognizer = self._recognizer
            tag = recognizer.find_by_name(names) or recognizer.find_by_class(kind, self._taken)
        return None if tag in self._taken else tag

    def _assign_new_tag(self, value: bytes, kind: str) -> str:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        tag, keyed = f"{kind}{self._counts[kind]}", not is_strong_secret(value, kind)
        record = RedactionRecord(
            tag=tag,
            salt=self._salt,
            mark=fingerprint_secret(value, self._salt, self._known.key if keyed else b""),
            keyed=keyed,
            key_mark=mark_key(self._salt, self._known.key) if keyed else b"",
            names=self._find_names(value),
        )
        self.unwritten.append(record)
        return tag

    def _find_names(self, value: bytes) -> tuple[str, ...]:
        return self._known.names.get(value.decode("utf-8", "surrogateescape"), ())


def _classify_secret(value: bytes) -> str:
    """Return the class of a secret by its form."""
    found = patterns.find_pattern_secrets(value, value, find_possible_formats(value))
    return next((kind for _, _, kind in found), "k")
