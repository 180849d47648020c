"""Proof that a text holds no secret: one native pass, before the exact search.

Every pattern here matches wherever the exact search finds something, and elsewhere too: lookarounds
and upper bounds are left out, and of values only a digit or a sign is asked. So a text without a
match needs no other search, which is so for almost every text. Without `hyperscan` (there is no
wheel for every system) nothing is proven, and all is searched.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from traces.redaction.detection.assignments import (
    KEY_NAMES,
    NAME_ENDING,
    PASSWORD_NAMES,
    TOKEN_NAMES,
)
from traces.redaction.detection.native_matcher import NativeMatcher
from traces.redaction.detection.neighbour_values import SIGN
from traces.redaction.detection.placed_values import (
    PLACE_COUNT,
    list_openings,
    list_place_signs,
)
from traces.redaction.detection.secret_place import widen_pattern
from traces.redaction.detection.token_formats import TOKEN_FORMATS

TOKENS, ASSIGNED, ADDRESS, NEEDLES = 1, 2, 4, 8
"""What a text may hold: a token, an assigned value or key block, a password in a URL, a known
value."""
PERCENT, BACKSLASH, WIDE = 16, 32, 64
"""Escapes that a text may hold: of a byte of ASCII, in URLs and in JSON, and of any other byte."""
FIRST_PLACE = 7
PLACED = ((1 << PLACE_COUNT) - 1) << FIRST_PLACE
"""A value in a place of `placed_values`, a bit for each place."""
SECRETS = TOKENS | ASSIGNED | ADDRESS | NEEDLES | PLACED
EVERYTHING = SECRETS | PERCENT | BACKSLASH | WIDE

_ALONE = rb"(?:^|[^A-Za-z0-9]|\\[nrtbf])"
_TOKENS_WITHOUT_PREFIX = (
    rb"[0-9a-f]{32}-us[0-9]",
    rb"\.atlasv1\.[\w-]{40}",
    rb"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27}",
    rb"[0-9a-f]{36}FFFFNRAL",
    rb"_[A-Za-z0-9]{29}_mmk",
    rb"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",
    rb":AA[\w-]{33}",
    rb"[0-9]Q~[\w.~-]{31}",
    rb"\$(?:production|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32}",
    rb"(?i:bearer|ssws|basic) [\w.~+/=-]{20}",
)
_GROUP = re.compile(rb"(?<!\\)\((?!\?)")
"""The start of a group in a token's format: to compile all of them takes a tenth of a start-up."""
_SEPARATOR = rb"[\\\"'`\]:=>,\s]+"


def list_prefilter_patterns() -> tuple[tuple[int, bytes], ...]:
    """List the patterns, each with what it is a sign of."""
    tokens = [
        (b"" if _GROUP.search(pattern) else _ALONE) + widen_pattern(pattern)
        for _, _, pattern in TOKEN_FORMATS
    ]
    name = (
        b"(?:" + PASSWORD_NAMES + b"|(?:^|[^A-Za-z0-9_-]|--|(?:" + TOKEN_NAMES + b")[_-]?)token|(?:"
        + KEY_NAMES + b")[_-]?(?:access[_-]?)?key)"
    )  # fmt: skip
    return (
        *((TOKENS, pattern) for pattern in (*tokens, *_TOKENS_WITHOUT_PREFIX)),
        (ASSIGNED, b"(?i)" + name + _SEPARATOR + rb"\S*[0-9]"),
        (ASSIGNED, b"(?i)" + name + SIGN),
        (ASSIGNED, b"[A-Z0-9_]_(?:KEY|TOKEN)" + SIGN),
        (ASSIGNED, b"[A-Z0-9_]_(?:KEY|TOKEN)" + _SEPARATOR + rb"\S*[0-9]"),
        (ASSIGNED, b"(?i)(?:" + PASSWORD_NAMES + b")" + _SEPARATOR + rb"\S*[!@#$%^&*?~]"),
        (ASSIGNED, rb"(?i)name=\\*\"[\w.-]*(?:passwo|passw|pw|secr|tok|k)(?:rd|d|et|en|ey)\\*\""),
        (ASSIGNED, b"PRIVATE KEY"),
        *(
            (1 << FIRST_PLACE + number, widen_pattern(sign))
            for number, sign in enumerate(list_place_signs())
        ),
        (ADDRESS, rb"://[^/?#@\s\"'<>\\]{6,}@"),
        (PERCENT, rb"%[0-7][0-9a-fA-F]"),
        (BACKSLASH, rb"\\(?:u00|/)"),
        (WIDE, rb"%[0-9a-fA-F]{2}|\\[u/]"),
    )


class SecretPrefilter:
    """Tells what a text may hold."""

    def __init__(self) -> None:
        self._given = self._learned = NativeMatcher((), kept=False)

    def set_given(self, needles: Iterable[bytes]) -> None:
        """Set the search texts of the values that are known from the start."""
        self._given = _match_needles(needles)

    def set_learned(self, needles: Iterable[bytes]) -> None:
        """Set those of the values from the wire, which change."""
        self._learned = _match_needles(needles)

    def find_possible(self, data: bytes) -> int:
        """Return what the data may hold: bits of SECRETS, and of the escapes."""
        return (
            find_possible_formats(data)
            | self._given.find_possible(data)
            | self._learned.find_possible(data)
        )


def find_possible_formats(data: bytes) -> int:
    """Return what the data may hold, apart from known values: bits as of SecretPrefilter."""
    return _match_formats().find_possible(data)


def find_begun_places(tail: bytes) -> int:
    """Return bits of the places of `placed_values` in which a value may have begun."""
    return _match_openings().find_possible(tail)


def find_openings(data: bytes) -> Mapping[int, list[int]] | None:
    """Return the ends of the openings of each place of `placed_values`, by its bit; None if they
    are unknown."""
    return _match_every_opening().find_ends(data)


def find_name_ends(data: bytes) -> Sequence[int] | None:
    """Return the offsets of the last three letters of names of secrets, in order; None if they are
    unknown."""
    ends = _match_name_ends().find_ends(data)
    return None if ends is None else [end - 4 for end in ends.get(1, ())]


@cache
def _match_name_ends() -> NativeMatcher:
    return NativeMatcher([(1, NAME_ENDING)], kept=True, every_match=True)


@cache
def _match_every_opening() -> NativeMatcher:
    openings = enumerate(map(widen_pattern, list_openings()))
    numbered = ((1 << number, opening) for number, opening in openings)
    return NativeMatcher(numbered, kept=True, every_match=True)


@cache
def _match_openings() -> NativeMatcher:
    openings = enumerate(map(widen_pattern, list_openings()))
    return NativeMatcher(((1 << number, opening) for number, opening in openings), kept=True)


def _match_needles(needles: Iterable[bytes]) -> NativeMatcher:
    escaped = (b"".join(b"\\x%02x" % byte for byte in needle) for needle in needles)
    return NativeMatcher(((NEEDLES, each) for each in escaped), kept=False)


@cache
def _match_formats() -> NativeMatcher:
    return NativeMatcher(list_prefilter_patterns(), kept=True)
