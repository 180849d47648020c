"""Bodies that hold a long list, sent again and again, each a little longer: read as far as new.

A client sends its whole conversation with every request: sixty requests of a megabyte, each
nearly the one before. The last few bodies are remembered with what they said. An item that stands
in one of them begins a run: as far as both go on with the same bytes, nothing is parsed again,
also behind an item that was changed, left out or put in. What a body says does not depend on
what was read before it, only how long reading takes.
"""

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from traces import spans
from traces.delta import common_prefix

MOST = 1 << 24
"""Bytes of bodies that are remembered; beyond that, only the last one is."""

_FEW = 16
"""Bodies that are remembered at most: each is looked into for what is new in the next one."""

_SPACE = re.compile(rb"[ \t\n\r]*+")
_BEHIND = re.compile(rb"[ \t\n\r]*+([,\]])[ \t\n\r]*+")


@dataclass(frozen=True, slots=True)
class Read[T, R]:
    """What a body says: what stands around its list, and each item with its place."""

    rest: R
    items: tuple[T, ...] = ()
    starts: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()


@dataclass(eq=False)
class _List[T]:
    """The list of a body, as far as it was read."""

    body: bytes
    texts: list[bytes] = field(default_factory=list)
    said: list[T] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)

    @cached_property
    def places(self) -> dict[bytes, int]:
        """Where each item is in the list; of equal ones the first."""
        last = len(self.texts) - 1
        return dict(zip(reversed(self.texts), range(last, -1, -1), strict=True))

    def add(self, at: int, text: bytes, said: T) -> None:
        """One more item."""
        self.texts.append(text)
        self.said.append(said)
        self.starts.append(at)
        self.stops.append(at + len(text))

    def follow(self, other: "_List[T]", place: int, at: int) -> int:
        """Add the items of another list from `place` on that stand here from `at` on; how many.

        The first is known to be here. Of the last one the byte behind it is compared too: where
        12 stands in one, 123 may in the other.
        """
        start = other.starts[place]
        same = common_prefix(other.body, self.body, start, at)
        end = max(place + 1, bisect_left(other.stops, start + same))
        self.texts += other.texts[place:end]
        self.said += other.said[place:end]
        self.starts += [each - start + at for each in other.starts[place:end]]
        self.stops += [each - start + at for each in other.stops[place:end]]
        return end - place


class Reader[T, R]:
    """Reads bodies whose outermost object has a list under `key`.

    `item` reads the JSON text of an item; `rest` that of the body with its list empty, or the
    whole body where there is no such list. Both raise ValueError for what is no JSON.
    """

    def __init__(
        self, key: str, item: Callable[[bytes], T], rest: Callable[[bytes], R], most: int = MOST
    ) -> None:
        self._key, self._quoted = key.encode(), f'"{key}"'.encode()
        self._item, self._rest, self._most = item, rest, most
        self._past: list[_List[T]] = []
        self._around: tuple[bytes, bytes, R] | None = None

    def read(self, body: bytes) -> Read[T, R]:
        """What a body says; ValueError where it is no JSON."""
        at = self._begin(body)
        while at is not None:
            found, stop = self._listed(body, at)
            head, tail = body[:at], body[stop:]
            again = spans.members(tail, 0).get(self._key) if self._quoted in tail else None
            if again is None:
                rest = self._between(head, tail)
                return Read(rest, tuple(found.said), tuple(found.starts), tuple(found.stops))
            # Of equal keys the last one holds, as in any parser.
            at = stop + again[0] + 1 if tail[again[0] : again[0] + 1] == b"[" else None
        return Read(self._rest(body))

    def _begin(self, body: bytes) -> int | None:
        """The offset behind the bracket that opens the list; None where there is no list."""
        if self._around is not None and body.startswith(self._around[0]):
            return len(self._around[0])
        at = spans.array(body, self._key)
        return None if at is None else at + 1

    def _between(self, head: bytes, tail: bytes) -> R:
        """What stands around the list."""
        if self._around is None or self._around[:2] != (head, tail):
            self._around = head, tail, self._rest(head + tail)
        return self._around[2]

    def _listed(self, body: bytes, at: int) -> tuple[_List[T], int]:
        """The list that is open at `at`, and where its closing bracket stands."""
        found, taken = _List[T](body), dict[_List[T], int]()
        behind = _match(_SPACE, body, at)
        at, open = behind.end(), body[behind.end() : behind.end() + 1] != b"]"
        while open:
            text = body[at : spans.end(body, at)]
            if known := next((past for past in self._past if text in past.places), None):
                taken[known] = taken.get(known, 0) + found.follow(known, known.places[text], at)
            else:
                found.add(at, text, self._item(text))
            behind = _match(_BEHIND, body, found.stops[-1])
            at, open = behind.end(), behind[1] == b","
        self._remember(found, taken)
        return found, behind.start(1) if found.said else at

    def _remember(self, found: _List[T], taken: dict[_List[T], int]) -> None:
        """Remember this list, and those that are mostly another one."""
        size, kept = len(found.body), [found]
        for past in self._past:
            size += len(past.body)
            if size <= self._most and taken.get(past, 0) * 2 <= len(past.said):
                kept.append(past)
        self._past = kept[:_FEW]


def _match(pattern: re.Pattern[bytes], body: bytes, at: int) -> re.Match[bytes]:
    found = pattern.match(body, at)
    if found is None:
        raise ValueError(f"no JSON at byte {at}")
    return found
