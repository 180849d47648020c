"""Patterns that are searched only where the native matcher has seen their beginnings."""

import re
from collections.abc import Iterator, Sequence

OPENING_REACH = 1024
"""Bytes before and after the end of an opening, between which the place begins and its value does:
more than a beginning has, unless it is escaped twenty times."""


def find_near_openings(
    pattern: re.Pattern[bytes],
    start_pattern: re.Pattern[bytes],
    data: bytes,
    ends: Sequence[int] | None,
) -> Iterator[re.Match[bytes]]:
    """Yield what a pattern matches, as `finditer` does.

    `start_pattern` matches where the pattern begins to. `ends` are those of the openings, in order,
    one of which is near to every match; None if they are unknown, and all is searched.
    """
    if ends is None:
        yield from pattern.finditer(data)
        return
    found = 0
    for first, last in _group_ends(ends):
        starts = start_pattern.finditer(data, max(0, first - OPENING_REACH), last + OPENING_REACH)
        for start in starts:
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
