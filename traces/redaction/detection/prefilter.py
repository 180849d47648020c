"""Proof that a text holds no secret: one native pass, before the exact search.

Every pattern here matches wherever the exact search finds something, and elsewhere too: lookarounds
and upper bounds are left out, and of values only a digit or a sign is asked. So a text without a
match needs no other search, which is so for almost every text. Without `hyperscan` (there is no
wheel for every system) nothing is proven, and all is searched.
"""

import hashlib
import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from traces.lazy_pattern import compile_lazily
from traces.redaction.detection.assignments import KEY_NAMES, PASSWORD_NAMES, TOKEN_NAMES
from traces.redaction.detection.neighbour_values import SIGN
from traces.redaction.detection.placed_values import (
    PLACE_COUNT,
    PLACES,
    list_openings,
    list_place_signs,
)
from traces.redaction.detection.secret_place import widen_pattern
from traces.redaction.detection.token_formats import TOKEN_FORMATS

if TYPE_CHECKING:  # loaded with the first matcher: nothing of it is needed before the agent runs
    import hyperscan

type _Patterns = tuple[tuple[int, bytes], ...]

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
_GROUP = compile_lazily(rb"(?<!\\)\((?!\?)")
"""The start of a group in a token's format: to compile all of them takes a tenth of a start-up."""
_SEPARATOR = rb"[\\\"'`\]:=>,\s]+"
_WORTH_COMPILING, _PATTERN = 1 << 22, 1 << 16
"""Bytes searched otherwise before a matcher is worth making, with CALL for each search: at most so
many, and for each of its patterns."""
_CALL = 1 << 14


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


@cache
def is_native() -> bool:
    """Whether there is a wheel of the matcher for this system."""
    return find_spec("hyperscan") is not None


class _DatabaseScan:
    """Scan by a compiled matcher, with the memory that it works in and its result."""

    def __init__(self, database: "hyperscan.Database", kinds: Sequence[int]) -> None:
        import hyperscan

        self._database, self._scratch = database, hyperscan.Scratch(database)
        self._kinds, self._seen = kinds, 0

    def find_kinds(self, data: bytes) -> int:
        """Return the kinds of the patterns that match."""
        self._seen = 0
        self._database.scan(data, self._note, scratch=self._scratch)
        return self._seen

    def find_ends(self, data: bytes) -> dict[int, list[int]]:
        """Return the kinds of the patterns that match, each with the ends of its matches."""
        ends = defaultdict[int, list[int]](list)

        def note(number: int, start: int, stop: int, flags: int, context: object) -> None:
            ends[self._kinds[number]].append(stop)

        self._database.scan(data, note, scratch=self._scratch)
        return ends

    def _note(self, number: int, start: int, stop: int, flags: int, context: object) -> None:
        self._seen |= self._kinds[number]


class _ThreadScan(threading.local):
    """The scan of each thread.

    A matcher is shared by every thread of the process, and a scan releases the interpreter's lock:
    hyperscan refuses to scan in memory that another scan uses, and a shared result loses a match.
    """

    def __init__(self, database: "hyperscan.Database", kinds: Sequence[int]) -> None:
        self.own = _DatabaseScan(database, kinds)


class _NativeMatcher:
    """Patterns, each with what it is a sign of; compiled once they were asked often enough."""

    def __init__(
        self, patterns: Iterable[tuple[int, bytes]], *, kept: bool, every_match: bool = False
    ) -> None:
        """`kept`: they are the same in every run, so their matcher is kept in the user's cache;
        `every_match`: for `find_ends`, which has to see more than one match of each."""
        self._patterns, self._every_match = tuple(dict.fromkeys(patterns)), every_match
        self._kinds = _list_kinds(self._patterns)
        self._all = 0
        for kind in self._kinds:
            self._all |= kind
        self._kept, self._searched = kept, 0
        loaded = _load_kept_matcher(self._patterns, every_match) if kept else None
        self._scan = None if loaded is None else _ThreadScan(loaded, self._kinds)

    def find_possible(self, data: bytes) -> int:
        """Return the kinds of the patterns that match, or all kinds before it is compiled."""
        if not self._patterns:
            return 0
        scan = self._scan or self._make_scan(len(data))
        return self._all if scan is None else scan.own.find_kinds(data)

    def find_ends(self, data: bytes) -> Mapping[int, list[int]] | None:
        """Return the ends of all matches by kind; None before it is compiled."""
        scan = self._scan or self._make_scan(len(data))
        return None if scan is None else scan.own.find_ends(data)

    def _make_scan(self, size: int) -> _ThreadScan | None:
        """Compile the patterns once enough bytes were searched without; None before."""
        self._searched += size + _CALL
        worth = min(_WORTH_COMPILING, _PATTERN * len(self._patterns))
        if self._searched < worth or not is_native():
            return None
        database = _compile(self._patterns, self._every_match)
        if self._kept:
            _keep_matcher(self._patterns, self._every_match, database)
        self._scan = _ThreadScan(database, self._kinds)
        return self._scan


class SecretPrefilter:
    """Tells what a text may hold."""

    def __init__(self) -> None:
        self._given = self._learned = _NativeMatcher((), kept=False)

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


@cache
def _match_every_opening() -> _NativeMatcher:
    openings = tuple(enumerate(map(widen_pattern, list_openings())))[: len(PLACES)]
    numbered = ((1 << number, opening) for number, opening in openings)
    return _NativeMatcher(numbered, kept=True, every_match=True)


@cache
def _match_openings() -> _NativeMatcher:
    openings = enumerate(map(widen_pattern, list_openings()))
    return _NativeMatcher(((1 << number, opening) for number, opening in openings), kept=True)


def _match_needles(needles: Iterable[bytes]) -> _NativeMatcher:
    escaped = (b"".join(b"\\x%02x" % byte for byte in needle) for needle in needles)
    return _NativeMatcher(((NEEDLES, each) for each in escaped), kept=False)


@cache
def _match_formats() -> _NativeMatcher:
    return _NativeMatcher(list_prefilter_patterns(), kept=True)


def _list_kinds(patterns: _Patterns) -> list[int]:
    """List the kinds in order; the number of a pattern in the matcher is that of its kind."""
    return list(dict.fromkeys(kind for kind, _ in patterns))


def _compile(patterns: _Patterns, every_match: bool) -> "hyperscan.Database":
    import hyperscan

    numbers = {kind: number for number, kind in enumerate(_list_kinds(patterns))}
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[pattern for _, pattern in patterns],
        ids=[numbers[kind] for kind, _ in patterns],
        elements=len(patterns),
        flags=[0 if every_match else hyperscan.HS_FLAG_SINGLEMATCH] * len(patterns),
    )
    return database


def _load_kept_matcher(patterns: _Patterns, every_match: bool) -> "hyperscan.Database | None":
    """Load the matcher from the user's cache; None if there is none that this processor runs."""
    try:
        kept = _find_kept_file(patterns, every_match).read_bytes()
    except (OSError, RuntimeError):  # there is none, or no home
        return None
    if not is_native():
        return None
    import hyperscan

    try:
        database = hyperscan.loadb(kept, hyperscan.HS_MODE_BLOCK)
        hyperscan.Scratch(database)  # fails on what this processor cannot run
    except hyperscan.error:  # of another version, or damaged
        return None
    return database


def _keep_matcher(patterns: _Patterns, every_match: bool, database: "hyperscan.Database") -> None:
    """Keep the matcher in the user's cache: to make it takes 1 s, to load it 0.1 ms."""
    import hyperscan

    try:
        kept = _find_kept_file(patterns, every_match)
        kept.parent.mkdir(parents=True, exist_ok=True)
        aside = kept.with_name(f".{os.getpid()}-{threading.get_ident()}-{kept.name}")
        aside.write_bytes(hyperscan.dumpb(database))
        aside.replace(kept)
    except (OSError, RuntimeError):  # no home, or a full or read-only one
        return


def _find_kept_file(patterns: _Patterns, every_match: bool) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    text = repr((os.uname().machine, patterns, every_match)).encode()
    return Path(base, "stumble", f"search-{hashlib.sha256(text).hexdigest()[:16]}.db")
