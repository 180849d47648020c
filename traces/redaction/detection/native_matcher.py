"""Many patterns searched in one native pass, by `hyperscan`.

Without `hyperscan` (there is no wheel for every system) nothing is known of a text, and a matcher
is compiled only once enough was searched without it.
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

if TYPE_CHECKING:  # loaded with the first matcher: nothing of it is needed before the agent runs
    import hyperscan

type _Patterns = tuple[tuple[int, bytes], ...]

_WORTH_COMPILING, _PATTERN = 1 << 22, 1 << 16
"""Bytes searched otherwise before a matcher is worth making, with CALL for each search: at most so
many, and for each of its patterns."""
_CALL = 1 << 14


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


class NativeMatcher:
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
