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
from traces.redaction.detection.openings import find_near_openings
from traces.redaction.detection.secret_place import LONGEST_PLACED

LONGEST_OPEN_PLACE = LONGEST_PLACED + 320
"""Bytes at the end of a text in which a value may have begun, with the beginning of its place."""

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
        pattern, start_pattern = _compile(place.pattern), _compile(place.start_pattern)
        for match in find_near_openings(pattern, start_pattern, data, ends):
            value = match[1]
            if b"REDACTED" not in value and place.is_secret(value):
                out.append((*match.span(1), place.kind))
    for number, find in enumerate(LISTS, len(PLACES)):
        if possible >> number & 1:
            ends = None if openings is None else openings.get(1 << number, ())
            out += [(a, b, "n") for a, b in find(data, ends) if b"REDACTED" not in data[a:b]]
    return out


def find_open_place(tail: bytes, started: int) -> int:
    """Return the offset of an incomplete value at the end; len(tail) if there is none.

    Bit K of `begun` is set if the value in place K may have begun; the others are not searched.
    """
    starts = [
        match.start(1)
        for number, place in enumerate(PLACES)
        if started >> number & 1 and (match := _compile(place.open_pattern).search(tail))
    ]
    if started >> len(PLACES):
        starts.append(find_open_list(tail))
    return min(starts, default=len(tail))
