"""Align two sequences of different lengths by a longest common subsequence."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import zip_longest

type IndexPair = tuple[int | None, int | None]


def align_sequences[T: Hashable](wanted: Sequence[T], got: Sequence[T]) -> Iterator[IndexPair]:
    """Yield the positions of both in order, each once: a longest common subsequence, and the
    elements between its members in pairs, with None if one side has fewer.
    """
    start, end = 0, 0
    shorter = min(len(wanted), len(got))
    while start < shorter and wanted[start] == got[start]:
        start += 1
    while end < shorter - start and wanted[-1 - end] == got[-1 - end]:
        end += 1
    yield from ((n, n) for n in range(start))
    yield from _align_middle(
        range(start, len(wanted) - end), range(start, len(got) - end), wanted, got
    )
    yield from ((len(wanted) - n, len(got) - n) for n in range(end, 0, -1))


def _align_middle[T: Hashable](
    ours: range, theirs: range, wanted: Sequence[T], got: Sequence[T]
) -> Iterator[IndexPair]:
    left, right = ours.start, theirs.start
    for n, m in _find_common_positions([wanted[n] for n in ours], [got[m] for m in theirs]):
        yield from zip_longest(range(left, ours.start + n), range(right, theirs.start + m))
        yield ours.start + n, theirs.start + m
        left, right = ours.start + n + 1, theirs.start + m + 1
    yield from zip_longest(range(left, ours.stop), range(right, theirs.stop))


def _find_common_positions[T: Hashable](
    wanted: Sequence[T], got: Sequence[T]
) -> list[tuple[int, int]]:
    """Return the positions of a longest common subsequence.

    Each row of the length table is one integer, whose bit m is 0 if the length grows at m (Hyyro,
    Bit-parallel LCS-length computation revisited, 2004); walking back through the rows gives the
    positions.
    """
    mask = (1 << len(got)) - 1
    places = dict[T, int]()
    for m, each in enumerate(got):
        places[each] = places.get(each, 0) | 1 << m
    rows, row = list[int](), mask
    for each in wanted:
        same = row & places.get(each, 0)
        row = ((row + same) | (row - same)) & mask
        rows.append(row)
    positions: list[tuple[int, int]] = []
    n, m = len(wanted), len(got)
    while n and m:
        if rows[n - 1] >> (m - 1) & 1:
            m -= 1
        elif n > 1 and not rows[n - 2] >> (m - 1) & 1:
            n -= 1
        else:
            n, m = n - 1, m - 1
            positions.append((n, m))
    return positions[::-1]
