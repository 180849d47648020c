"""Incremental parsing of JSON bodies that repeat a long list, each time a little longer.

A client sends its whole conversation with every request: sixty requests of a megabyte, each almost
the same as the one before. The last few bodies are remembered with their parsed items. An item that
occurs in one of them begins a run: as long as the bytes of both bodies are equal, nothing is parsed
again, even after an item that was changed, removed or inserted. A list that only grew is not copied
either, so the time depends on what is new, and on a comparison of the rest. The result does not
depend on the bodies read before, only the time does.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from traces.bodies import json_offsets
from traces.bodies.body_delta import common_prefix

MAX_REMEMBERED_BYTES = 1 << 24
"""Total size of the remembered bodies; beyond that, only the last one is remembered."""

_FEW = 16
"""Maximum number of remembered bodies: each is searched for new items of the next one."""

_ENDS = b'}]"'
"""The last byte of a value that ends there, whatever follows."""
_SPACE = re.compile(rb"[ \t\n\r]*+")
_BEHIND = re.compile(rb"[ \t\n\r]*+([,\]])[ \t\n\r]*+")


@dataclass(frozen=True, slots=True)
class ParsedListBody[T, R]:
    """A parsed body: the part around its list, and each item with its offsets.

    The lists may grow when the next body is read, and belong to its result then.
    """

    rest: R
    items: Sequence[T] = ()
    starts: Sequence[int] = ()
    stops: Sequence[int] = ()
    version: int = field(default=0, compare=False)
    """Number of this reading, which names its list in later ones."""
    earlier: int = field(default=0, compare=False)
    """Version of the earlier reading whose list begins with the same items at the same offsets."""
    shared: int = field(default=0, compare=False)
    """How many first items are those of that reading."""


@dataclass(eq=False)
class _ParsedList[T]:
    """The list of a body, as far as it is parsed."""

    body: bytes
    start: int
    """Offset after the opening bracket."""
    version: int = 0
    texts: list[bytes] = field(default_factory=list)
    values: list[T] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)

    places: dict[bytes, int] | None = None
    """Index of each item in the list, of equal items the first; None until it is searched."""

    def find_item(self, text: bytes) -> int | None:
        """Return the index of the first such item."""
        if self.places is None:
            last = len(self.texts) - 1
            self.places = dict(zip(reversed(self.texts), range(last, -1, -1), strict=True))
        return self.places.get(text)

    def count_shared(self, body: bytes, start: int) -> int:
        """Return how many first items another body has at the same offsets."""
        if start != self.start or not self.stops:
            return 0
        common = common_prefix(self.body, body)
        count = bisect_left(self.stops, common)
        # A number may go on in the other body, where a string or container has ended.
        is_last_ended = self.stops[count : count + 1] == [common] and self.texts[count][-1] in _ENDS
        return count + is_last_ended

    def continue_in(self, body: bytes, count: int) -> "_ParsedList[T]":
        """Return the first items as the beginning of the list of another body.

        The lists are copied only if others of their items are left out.
        """
        longer = _ParsedList(
            body, self.start, 0, self.texts, self.values, self.starts, self.stops, self.places
        )
        if count < len(self.values):
            longer.texts, longer.values = self.texts[:], self.values[:]
            longer.starts, longer.stops = self.starts[:], self.stops[:]
            longer.places = None if self.places is None else self.places.copy()
            longer.drop_items(count)
        return longer

    def drop_items(self, count: int) -> None:
        """Leave the first `count` items."""
        for text in self.texts[count:] if self.places is not None else ():
            if self.places is not None and self.places.get(text, -1) >= count:
                del self.places[text]
        for each in (self.texts, self.values, self.starts, self.stops):
            del each[count:]

    def add_item(self, at: int, text: bytes, said: T) -> None:
        """Append one item."""
        if self.places is not None:
            self.places.setdefault(text, len(self.texts))
        self.texts.append(text)
        self.values.append(said)
        self.starts.append(at)
        self.stops.append(at + len(text))

    def copy_items(self, other: "_ParsedList[T]", position: int, at: int) -> int:
        """Append the items of another list, from index `place`, that also occur here from offset
        `at`.

        Returns their number. The first is known to match. The byte after the last one is compared
        too: one body may have 12, the other 123.
        """
        start = other.starts[position]
        common = common_prefix(other.body, self.body, start, at)
        end = max(position + 1, bisect_left(other.stops, start + common))
        if self.places is not None:
            for number, text in enumerate(other.texts[position:end], len(self.texts)):
                self.places.setdefault(text, number)
        self.texts += other.texts[position:end]
        self.values += other.values[position:end]
        self.starts += [each - start + at for each in other.starts[position:end]]
        self.stops += [each - start + at for each in other.stops[position:end]]
        return end - position


class IncrementalListReader[T, R]:
    """Parses bodies whose outermost object has a list under `key`.

    `item` parses the JSON text of an item; `rest` that of the body with its list empty, or of the
    complete body if there is no such list. Both raise ValueError if the text is not JSON.
    """

    def __init__(
        self,
        key: str,
        item: Callable[[bytes], T],
        rest: Callable[[bytes], R],
        most: int = MAX_REMEMBERED_BYTES,
    ) -> None:
        self._key, self._quoted = key.encode(), f'"{key}"'.encode()
        self._item, self._rest, self._most = item, rest, most
        self._past: list[_ParsedList[T]] = []
        self._version, self._shared = 0, (0, 0)
        self._around: tuple[bytes, bytes, R] | None = None

    def read(self, body: bytes) -> ParsedListBody[T, R]:
        """Parse a body; raise ValueError if it is not JSON."""
        at = self._find_list_start(body)
        while at is not None:
            parsed, stop = self._read_list(body, at)
            head, tail = body[:at], body[stop:]
            duplicate = (
                json_offsets.find_json_members(tail, 0).get(self._key)
                if self._quoted in tail
                else None
            )
            if duplicate is None:
                rest = self._read_rest(head, tail)
                return ParsedListBody(
                    rest,
                    parsed.values,
                    parsed.starts,
                    parsed.stops,
                    parsed.version,
                    *self._shared,
                )
            # Of equal keys the last one counts, as in any parser.
            at = stop + duplicate[0] + 1 if tail[duplicate[0] : duplicate[0] + 1] == b"[" else None
        return ParsedListBody(self._rest(body))

    def _find_list_start(self, body: bytes) -> int | None:
        """Return the offset after the opening bracket of the list; None if there is no list."""
        if self._around is not None and body.startswith(self._around[0]):
            return len(self._around[0])
        at = json_offsets.find_json_array(body, self._key)
        return None if at is None else at + 1

    def _read_rest(self, head: bytes, tail: bytes) -> R:
        """Parse the part around the list."""
        if self._around is None or self._around[:2] != (head, tail):
            self._around = head, tail, self._rest(head + tail)
        return self._around[2]

    def _read_list(self, body: bytes, at: int) -> tuple[_ParsedList[T], int]:
        """Parse the list that opens before `at`; also return the offset of its closing bracket.

        What it shares with the beginning of an earlier one is only compared.
        """
        count, earlier = self._find_earlier(body, at)
        self._shared = (earlier.version, count) if earlier else (0, 0)
        parsed = earlier.continue_in(body, count) if earlier else _ParsedList(body, at)
        self._version += 1
        parsed.version = self._version
        copied = {earlier: count} if earlier else dict[_ParsedList[T], int]()
        try:
            stop = self._read_items(parsed, at, copied)
        except (ValueError, RecursionError):
            if earlier is not None and earlier.values is parsed.values:
                earlier.drop_items(count)
            raise
        self._remember(parsed, copied)
        return parsed, stop

    def _find_earlier(self, body: bytes, at: int) -> tuple[int, _ParsedList[T] | None]:
        """Return the remembered list that begins like this one, and how many items they share."""
        most, found = 0, None
        for past in self._past:
            count = past.count_shared(body, at)
            if count > most:
                most, found = count, past
            if found is past and count == len(past.values):
                break
        return most, found

    def _read_items(
        self, parsed: _ParsedList[T], at: int, copied: dict[_ParsedList[T], int]
    ) -> int:
        """Parse the items that are not there yet; return the offset of the closing bracket."""
        body = parsed.body
        if parsed.values:
            behind = _match_json_at(_BEHIND, body, parsed.stops[-1])
            at, open = behind.end(), behind[1] == b","
        else:
            behind = _match_json_at(_SPACE, body, at)
            at, open = behind.end(), body[behind.end() : behind.end() + 1] != b"]"
        while open:
            text = body[at : json_offsets.find_json_end(body, at)]
            for past in self._past:
                if past.values is not parsed.values and (place := past.find_item(text)) is not None:
                    copied[past] = copied.get(past, 0) + parsed.copy_items(past, place, at)
                    break
            else:
                parsed.add_item(at, text, self._item(text))
            behind = _match_json_at(_BEHIND, body, parsed.stops[-1])
            at, open = behind.end(), behind[1] == b","
        return behind.start(1) if parsed.values else at

    def _remember(self, found: _ParsedList[T], taken: dict[_ParsedList[T], int]) -> None:
        """Remember this list, and older ones except those it mostly repeats."""
        size, remembered = len(found.body), [found]
        for past in self._past:
            size += len(past.body)
            is_repeated = past.values is found.values or taken.get(past, 0) * 2 > len(past.values)
            if size <= self._most and not is_repeated:
                remembered.append(past)
        self._past = remembered[:_FEW]


def _match_json_at(pattern: re.Pattern[bytes], body: bytes, at: int) -> re.Match[bytes]:
    match = pattern.match(body, at)
    if match is None:
        raise ValueError(f"no JSON at byte {at}")
    return match
