"""Bodies that hold a long list, sent again and again, each a little longer: read as far as new.

A client sends its whole conversation with every request: sixty requests of a megabyte, each
nearly the one before. An item of the list that was read once is known by its bytes, and knows
what came after it last time; so what was there before is compared and not parsed, also behind
an item that was changed, left out or put in. What a body says does not depend on what was read
before it, only how long reading takes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from traces import spans
from traces.spans import Span

MOST = 1 << 24
"""Bytes of items that are remembered; beyond that, only those of the last body are."""

_SPACE = re.compile(rb"[ \t\n\r]*+")
_BEHIND = re.compile(rb"[ \t\n\r]*+([,\]])[ \t\n\r]*+")


@dataclass(frozen=True, slots=True)
class Read[T, R]:
    """What a body says: what stands around its list, and each item with its place."""

    rest: R
    items: tuple[T, ...] = ()
    places: tuple[Span, ...] = ()


@dataclass(slots=True, eq=False)
class _Item[T]:
    text: bytes
    said: T
    next: "_Item[T] | None" = None
    """What followed it last time."""


class Reader[T, R]:
    """Reads bodies whose outermost object has a list under `key`.

    `item` reads the JSON text of an item; `rest` that of the body with its list empty, or the
    whole body where there is no such list. Both raise ValueError for what is no JSON.
    """

    def __init__(
        self, key: bytes, item: Callable[[bytes], T], rest: Callable[[bytes], R], most: int = MOST
    ) -> None:
        self._key, self._quoted = key, b'"%b"' % key
        self._item, self._rest, self._most = item, rest, most
        self._known: dict[bytes, _Item[T]] = {}
        self._size = 0
        self._first: _Item[T] | None = None
        self._around: tuple[bytes, bytes, R] | None = None

    def read(self, body: bytes) -> Read[T, R]:
        """What a body says; ValueError where it is no JSON."""
        at = self._begin(body)
        while at is not None:
            found, stop = self._listed(body, at)
            head, tail = body[:at], body[stop:]
            again = spans.members(tail, 0).get(self._key) if self._quoted in tail else None
            if again is None:
                places = tuple([(start, start + len(item.text)) for start, item in found])
                said = tuple([item.said for _, item in found])
                return Read(self._between(head, tail), said, places)
            # Of equal keys the last one holds, as in any parser.
            at = stop + again[0] + 1 if tail[again[0] : again[0] + 1] == b"[" else None
        return Read(self._rest(body))

    def _begin(self, body: bytes) -> int | None:
        """The offset behind the bracket that opens the list; None where there is no list."""
        if self._around is not None and body.startswith(self._around[0]):
            return len(self._around[0])
        at = spans.array(body, self._key)
        return None if at is None else at + 1

    def _listed(self, body: bytes, at: int) -> tuple[list[tuple[int, _Item[T]]], int]:
        """The items, each with where it starts, and where the closing bracket stands."""
        found = list[tuple[int, _Item[T]]]()
        at, last = _behind(_SPACE, body, at).end(), None
        if body[at : at + 1] == b"]":
            return found, at
        while True:
            item = self._read(body, at, self._first if last is None else last.next)
            found.append((at, item))
            if last is None:
                self._first = item
            else:
                last.next = item
            last, behind = item, _behind(_BEHIND, body, at + len(item.text))
            if behind[1] == b"]":
                break
            at = behind.end()
        if self._size > self._most:
            self._forget(found)
        return found, behind.start(1)

    def _read(self, body: bytes, at: int, guess: _Item[T] | None) -> _Item[T]:
        # What ends with a bracket or quote ends there; 12 may be the beginning of 123.
        if guess and guess.text[-1] in b'}]"' and body.startswith(guess.text, at):
            return guess
        text = body[at : spans.end(body, at)]
        item = self._known.get(text)
        if item is None:
            item = _Item(text, self._item(text))
            self._known[text] = item
            self._size += len(text)
        return item

    def _between(self, head: bytes, tail: bytes) -> R:
        """What stands around the list."""
        if self._around is None or self._around[:2] != (head, tail):
            self._around = head, tail, self._rest(head + tail)
        return self._around[2]

    def _forget(self, kept: list[tuple[int, _Item[T]]]) -> None:
        """Remember only these items."""
        self._known = {item.text: item for _, item in kept}
        self._size = sum(map(len, self._known))
        kept[-1][1].next = None


def _behind(pattern: re.Pattern[bytes], body: bytes, at: int) -> re.Match[bytes]:
    found = pattern.match(body, at)
    if found is None:
        raise ValueError(f"no JSON at byte {at}")
    return found
