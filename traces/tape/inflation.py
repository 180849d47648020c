"""Memory bounds for reading a tape: a few bytes must not fill the memory.

A tape holds zstd frames, which declare their size, and bodies that are deltas of earlier ones. The
tape writer never packs to less than 1/1024. A conversation that is sent again with each request
expands to its size times the number of requests, which is far more, so all output of one tape has a
bound of its own.
"""

import os
from functools import cache

import zstandard

RATIO = 2048
"""Maximum output bytes per byte of a zstd frame."""
SMALL = 1 << 20
"""Output bytes that any zstd frame may have."""
TAPE_RATIO = 4096
"""Maximum bytes of memory per byte of a tape."""
SMALL_TAPE = 1 << 28
"""Bytes of memory that any tape may take."""

_ZSTD = zstandard.ZstdDecompressor()


class InflationBudget:
    """The bytes of memory that reading a tape of `size` bytes may still take."""

    __slots__ = ("left", "spent")

    def __init__(self, size: int) -> None:
        self.left = max(SMALL_TAPE, min(TAPE_RATIO * size, _get_half_of_memory()))
        self.spent = 0

    def spend(self, size: int) -> None:
        """Charge `size` bytes; ValueError, without a charge, if fewer are left."""
        if size > self.left:
            raise ValueError("more comes out of the tape than its size allows")
        self.left -= size
        self.spent += size


@cache
def _get_half_of_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def inflate(packed: bytes | memoryview, budget: InflationBudget | None = None) -> bytes:
    """Decompress one zstd frame.

    Raises ValueError or zstandard.ZstdError if it is not a zstd frame, does not declare its size,
    or declares one that is out of proportion.
    """
    size = read_inflated_size(packed)
    if budget is not None:
        budget.spend(size)
    return _ZSTD.decompress(packed)


def read_inflated_size(packed: bytes | memoryview, known: int = 0) -> int:
    """Return the size that a zstd frame declares; raises as `inflate` does.

    `known` is the size of its dictionary, all of which it may repeat.
    """
    size = int(zstandard.frame_content_size(packed))
    if size < 0:
        raise ValueError("a zstd frame does not say how much is in it")
    if size > known + max(SMALL, RATIO * len(packed)):
        raise ValueError(f"{len(packed)} packed bytes say that they are {size}")
    return size
