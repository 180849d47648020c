"""Which elements of two sequences belong together, where one has more or fewer than the other."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import zip_longest

type Pair = tuple[int | None, int | None]


def pairs[T: Hashable](wanted: Sequence[T], got: Sequence[T]) -> Iterator[Pair]:
    """Positions of both in order, each once: a longest common subsequence, and what lies between
    two of its elements side by side, with None where one side has nothing left."""
    start, end = 0, 0
    shorter = min(len(wanted), len(got))
    while start < shorter and wanted[start] == got[start]:
        start += 1
    while end < shorter - start and wanted[-1 - end] == got[-1 - end]:
        end += 1
    yield from ((n, n) for n in range(start))
    yield from _between(range(start, len(wanted) - end), range(start, len(got) - end), wanted, got)
    yield from ((len(wanted) - n, len(got) - n) for n in range(end, 0, -1))


def _between[T: Hashable](
    ours: range, theirs: range, wanted: Sequence[T], got: Sequence[T]
) -> Iterator[Pair]:
    left, right = ours.start, theirs.start
    for n, m in _common([wanted[n] for n in ours], [got[m] for m in theirs]):
        yield from zip_longest(range(left, ours.start + n), range(right, theirs.start + m))
        yield ours.start + n, theirs.start + m
        left, right = ours.start + n + 1, theirs.start + m + 1
    yield from zip_longest(range(left, ours.stop), range(right, theirs.stop))


def _common[T: Hashable](wanted: Sequence[T], got: Sequence[T]) -> list[tuple[int, int]]:
    """The positions of a longest common subsequence.

    Of the table of its lengths each row is one integer, whose bit m is 0 where the length grows
    at m (Hyyro, Bit-parallel LCS-length computation revisited, 2004); the way back through the
    rows gives the positions.
    """
    whole = (1 << len(got)) - 1
    places = dict[T, int]()
    for m, each in enumerate(got):
        places[each] = places.get(each, 0) | 1 << m
    rows, row = list[int](), whole
    for each in wanted:
        same = row & places.get(each, 0)
        row = ((row + same) | (row - same)) & whole
        rows.append(row)
    found: list[tuple[int, int]] = []
    n, m = len(wanted), len(got)
    while n and m:
        if rows[n - 1] >> (m - 1) & 1:
            m -= 1
        elif n > 1 and not rows[n - 2] >> (m - 1) & 1:
            n -= 1
        else:
            n, m = n - 1, m - 1
            found.append((n, m))
    return found[::-1]
