"""Secrets in places of known form: a statement, a line of a file, a login, a hash, a list.

Each place is a beginning, the value, and what has to follow it; the value must look like a secret.
Beginnings are rare in other text, and the prefilter knows them, so that the patterns run on almost
no text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from traces.redaction.detection.command_places import COMMAND_PLACES
from traces.redaction.detection.file_places import FILE_PLACES
from traces.redaction.detection.listed_values import LIST_SIGNS, LISTS, find_open_list
from traces.redaction.detection.name_places import NAME_PLACES
from traces.redaction.detection.secret_place import LONGEST_PLACED, SecretPlace

LONGEST_OPEN_PLACE = LONGEST_PLACED + 320
"""Bytes at the end of a text in which a value may have begun, with the beginning of its place."""

OPENING_REACH = 1024
"""Bytes before and after the end of an opening, between which the place begins and its value does:
more than a beginning has, unless it is escaped twenty times."""

type PlacedSecretSpan = tuple[int, int, str]
"""Start, stop and class."""

PLACES = (*FILE_PLACES, *COMMAND_PLACES, *NAME_PLACES)
PLACE_COUNT = len(PLACES) + len(LISTS)


@cache
def _compile(pattern: bytes) -> re.Pattern[bytes]:
    """Compile a pattern once it is needed: most texts have none of these places."""
    return re.compile(pattern)


def list_place_signs() -> Iterator[bytes]:
    """Yield a pattern for each place, the last ones for lists, that matches wherever a secret is
    found there."""
    for place in PLACES:
        yield place.sign or place.beginning
    yield from LIST_SIGNS


def list_openings() -> Iterator[bytes]:
    """Yield a pattern for each place, the last ones for lists, that matches wherever a value may
    have begun there."""
    for place in PLACES:
        yield place.opening or place.beginning
    yield from LIST_SIGNS


def find_placed_secrets(
    data: bytes, possible: int, openings: Mapping[int, Sequence[int]] | None = None
) -> list[PlacedSecretSpan]:
    """Return the values in such places that look like secrets.

    Bit K of `possible` is set if the sign of place K may be in the data; the others are not
    searched. `openings` holds the ends of the openings of place K at `1 << K`, in order, and only
    what is near to them is searched.
    """
    out = list[PlacedSecretSpan]()
    for number, place in enumerate(PLACES):
        if not possible >> number & 1:
            continue
        ends = None if openings is None else openings.get(1 << number, ())
        for match in _find_place(place, data, ends):
            value = match[1]
            if b"REDACTED" not in value and place.is_secret(value):
                out.append((*match.span(1), place.kind))
    for number, find in enumerate(LISTS, len(PLACES)):
        if possible >> number & 1:
            out += [(a, b, "n") for a, b in find(data) if b"REDACTED" not in data[a:b]]
    return out


def _find_place(
    place: SecretPlace, data: bytes, ends: Sequence[int] | None
) -> Iterator[re.Match[bytes]]:
    """Yield what the pattern of the place matches, as `finditer` does."""
    pattern = _compile(place.pattern)
    if ends is None:
        yield from pattern.finditer(data)
        return
    found = 0
    for first, last in _group_ends(ends):
        begun = _compile(place.start_pattern)
        for start in begun.finditer(data, max(0, first - OPENING_REACH), last + OPENING_REACH):
            if start.start() < found:
                continue
            if start.start() > last:
                break
            if match := pattern.match(data, start.start()):
                found = match.end()
                yield match


def _group_ends(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of ends so close that what is searched around them overlaps."""
    first = last = None
    for end in ends:
        if first is None or last is None:
            first = end
        elif end - last > 2 * OPENING_REACH:
            yield first, last
            first = end
        last = end
    if first is not None and last is not None:
        yield first, last


def find_open_place(tail: bytes, begun: int) -> int:
    """Return the offset of an incomplete value at the end; len(tail) if there is none.

    Bit K of `begun` is set if the value in place K may have begun; the others are not searched.
    """
    starts = [
        match.start(1)
        for number, place in enumerate(PLACES)
        if begun >> number & 1 and (match := _compile(place.open_pattern).search(tail))
    ]
    if begun >> len(PLACES):
        starts.append(find_open_list(tail))
    return min(starts, default=len(tail))
