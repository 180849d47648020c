"""Which elements of two sequences belong together, where one has more or fewer than the other."""

from collections.abc import Hashable, Iterator, Sequence
from itertools import zip_longest

import numpy as np

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
    """The positions of a longest common subsequence; time and memory are their product.

    The table of lengths is made row by row, each by a running maximum (Wagner and Fischer's
    recurrence, in which a row never decreases).
    """
    if not wanted or not got:
        return []
    names = {each: number for number, each in enumerate(dict.fromkeys((*wanted, *got)))}
    theirs = np.array([names[each] for each in got])
    lengths = np.zeros((len(wanted) + 1, len(got) + 1), dtype=np.int32)
    for row, each in enumerate(wanted, 1):
        above = lengths[row - 1]
        same = above[:-1] + (theirs == names[each])
        np.maximum.accumulate(np.maximum(above[1:], same), out=lengths[row, 1:])
    found: list[tuple[int, int]] = []
    row, column = len(wanted), len(got)
    while row and column:
        if lengths[row, column] == lengths[row - 1, column]:
            row -= 1
        elif lengths[row, column] == lengths[row, column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            found.append((row, column))
    return found[::-1]
