"""Fingerprints: recognise the secret of a placeholder in a later run without storing its text.

A tape contains a mark for each secret: a hash of its value, salted by the tape. A strong secret (a
provider's token, 32 random characters) cannot be guessed, so its mark needs no key and can be
compared on any machine. A weak one (a password) could be guessed from such a mark; its hash uses a
key of the user that is on no tape, so only the user who recorded can compare it. A secret with a
name (an environment variable) is recognised by that name too: the key of another user is another
value of the same secret.
"""

import os
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

from msgspec import Struct

SALT_BYTES = 16
TAG_PATTERN = re.compile(r"[a-z][0-9]{1,9}")
"""A class and the number within it."""
_MARK = 16
_WEAK_KINDS = frozenset("bknp")
"""Classes of secrets that are recognised by their place or by a preceding word, not by their
form."""
_TOKEN = re.compile(rb"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w+/=.-]{32,}\Z")
_DISTINCT = 12


@dataclass(frozen=True, slots=True)
class KnownSecrets:
    """Values that are secret everywhere, each with its names (none for most)."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)
    """The user's key; without it the marks of weak secrets cannot be compared between runs."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)


class RedactionRecord(Struct, frozen=True, kw_only=True):
    """One secret of a tape: the tag of its placeholders, and its mark."""

    tag: str
    salt: bytes
    mark: bytes
    keyed: bool
    """True if comparing the mark needs the key of the user who recorded."""
    names: tuple[str, ...] = ()
    key_mark: bytes = b""
    """Mark of the key of a keyed record; empty on a tape of an earlier version."""


def is_strong_secret(value: bytes, kind: str) -> bool:
    """True if the value cannot be guessed: a provider's token, or a long mixed one."""
    if kind not in _WEAK_KINDS:
        return True
    return _TOKEN.match(value) is not None and len(set(value)) >= _DISTINCT


def fingerprint_secret(value: bytes, salt: bytes, key: bytes) -> bytes:
    """Return the hash that identifies a value."""
    return blake2b(value, digest_size=_MARK, salt=salt, key=key).digest()


def mark_key(salt: bytes, key: bytes) -> bytes:
    """Return a mark of a key, by which only a process that has the key knows it."""
    return blake2b(b"the key of keyed marks", digest_size=_MARK, salt=salt, key=key).digest()


def can_compare_marks(redactions: Iterable[RedactionRecord], key: bytes) -> bool:
    """Return whether the marks of weak secrets were made with this key, as far as a tape says."""
    keyed = [each for each in redactions if each.keyed]
    return bool(keyed) and all(each.key_mark == mark_key(each.salt, key) for each in keyed)


def find_replaceable_tags(redactions: Iterable[RedactionRecord]) -> tuple[str, ...]:
    """Return the tags that another user's secret may replace, in the order of the tape.

    These are the tags with a name. If no tag of the tape has one, the names were unknown to the
    recorder; then these are the tags whose secrets have the form of a provider's keys.
    """
    records = tuple(redactions)
    named_tags = tuple(each.tag for each in records if each.names)
    return named_tags or tuple(each.tag for each in records if each.tag[0] not in _WEAK_KINDS)


class SecretRecognizer:
    """Finds the redaction of a recording that a value of this run corresponds to."""

    def __init__(
        self,
        recorded: Iterable[RedactionRecord],
        key: bytes,
        seen: Iterable[RedactionRecord] = (),
    ) -> None:
        """`seen` are known by their values alone, as they are secrets of the same run."""
        self._key = key
        self._marks: dict[tuple[bytes, bool], dict[bytes, str]] = {}
        self._names: dict[str, str] = {}
        recorded = tuple(recorded)
        self._unnamed = (
            () if any(each.names for each in recorded) else find_replaceable_tags(recorded)
        )
        for each in (*recorded, *seen):
            self._marks.setdefault((each.salt, each.keyed), {})[each.mark] = each.tag
        for each in recorded:
            self._names |= dict.fromkeys(each.names, each.tag)

    def find_by_value(self, value: bytes) -> str | None:
        """Return the tag of the same value; None if no comparable mark matches."""
        for (salt, keyed), tags in self._marks.items():
            if (
                tag := tags.get(fingerprint_secret(value, salt, self._key if keyed else b""))
            ) is not None:
                return tag
        return None

    def find_by_name(self, names: Iterable[str]) -> str | None:
        """Return the tag of the secret with one of these names in the recording."""
        return next((self._names[name] for name in names if name in self._names), None)

    def find_by_class(self, kind: str, taken: Container[str]) -> str | None:
        """Return the next unused unnamed tag of this class; None if the tape has names."""
        unused = (tag for tag in self._unnamed if tag[0] == kind and tag not in taken)
        return next(unused, None)
