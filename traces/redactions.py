"""Which secret a placeholder stands for, known again in a later run without its text.

A tape keeps a mark for each secret: a hash of its value, salted by the tape. A strong secret
(a token of a provider, 32 random characters) cannot be guessed, so its mark needs no key and any
machine can compare it. A weak one (a password) could be guessed from such a mark; its hash is
keyed by a key of the user that is on no tape, so only the user who recorded can compare it. A
secret that has a name (a variable of the environment) is known by that name too: the key of
another user is another value of the same secret.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b

SALT = 16
_MARK = 16
_WEAK_KINDS = frozenset("bknp")
"""Classes of secrets that are known by their place or by a word before them, not by their shape."""
_TOKEN = re.compile(rb"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w+/=.-]{32,}\Z")
_DISTINCT = 12


@dataclass(frozen=True, slots=True)
class KnownSecrets:
    """Values that are secrets wherever they stand, each with its names (none for most)."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)
    """Of the user; without it the marks of weak secrets are not comparable between two runs."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """One secret of a tape: the tag of its placeholders, and how to know it again."""

    tag: str
    salt: bytes
    mark: bytes
    keyed: bool
    """True if the mark can be compared with the key of the user who recorded only."""
    names: tuple[str, ...] = ()


def is_strong(value: bytes, kind: str) -> bool:
    """True if nobody can find the value by trying: a provider's token, or long and mixed."""
    if kind not in _WEAK_KINDS:
        return True
    return _TOKEN.match(value) is not None and len(set(value)) >= _DISTINCT


def mark(value: bytes, salt: bytes, key: bytes) -> bytes:
    """The hash by which a value is known again."""
    return blake2b(value, digest_size=_MARK, salt=salt, key=key).digest()


class Recognizer:
    """Finds which redaction of a recording a value of this run is."""

    def __init__(self, recorded: Iterable[Redaction], key: bytes) -> None:
        self._key = key
        self._marks: dict[tuple[bytes, bool], dict[bytes, str]] = {}
        self._names: dict[str, str] = {}
        for each in recorded:
            self._marks.setdefault((each.salt, each.keyed), {})[each.mark] = each.tag
            self._names |= dict.fromkeys(each.names, each.tag)

    def by_value(self, value: bytes) -> str | None:
        """The tag of the same value; None if no mark that can be compared here fits."""
        for (salt, keyed), tags in self._marks.items():
            if (tag := tags.get(mark(value, salt, self._key if keyed else b""))) is not None:
                return tag
        return None

    def by_name(self, names: Iterable[str]) -> str | None:
        """The tag of the secret that had one of these names in the recording."""
        return next((self._names[name] for name in names if name in self._names), None)
