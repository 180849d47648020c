"""Memory bounds for reading a tape: a few bytes must not fill the memory.

A tape holds zstd frames, which declare their size, and bodies that are deltas of earlier ones. The
tape writer never packs to less than 1/1024. All output of one tape has a bound of its own. A body
that is a delta counts with its pieces alone: it is restored while it is read, so a conversation may
be sent again with any number of requests.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import zstandard

RATIO = 2048
"""Maximum output bytes per byte of a zstd frame."""
SMALL = 1 << 20
"""Output bytes that any zstd frame may have."""
TAPE_RATIO = 4096
"""Maximum bytes of memory per byte of a tape."""
RESTORED_RATIO = 20_480
"""Maximum bytes of restored bodies, one after the other, per byte of a tape: they take time. A chat
of 10,000 steps has fewer."""
SMALL_TAPE = 1 << 28
"""Bytes of memory that any tape may take."""

CGROUPS = Path("/sys/fs/cgroup")
"""The mount of cgroups; in a container its own is the root."""

_ZSTD = zstandard.ZstdDecompressor()


class InflationBudget:
    """The bytes of memory that reading a tape of `size` bytes may still take."""

    __slots__ = ("left", "restored", "restored_left", "spent")

    def __init__(self, size: int) -> None:
        self.left = max(SMALL_TAPE, min(TAPE_RATIO * size, _get_half_of_memory()))
        self.spent = self.restored = 0
        self.restored_left = max(SMALL_TAPE, RESTORED_RATIO * size)

    def check(self, size: int) -> None:
        """Charge the time to restore a body of `size` bytes; ValueError if it takes too much.

        It also has to fit into memory, beside the one it is made of.
        """
        if 2 * size > self.left or size > self.restored_left:
            raise ValueError("more comes out of the tape than its size allows")
        self.restored_left -= size
        self.restored += size

    def has_room(self, other: "InflationBudget", size: int) -> bool:
        """Whether what another budget was charged fits here, and `size` bytes more."""
        return self.left >= other.spent + size and self.restored_left >= other.restored

    def spend(self, size: int) -> None:
        """Charge `size` bytes; ValueError, without a charge, if fewer are left."""
        if size > self.left:
            raise ValueError("more comes out of the tape than its size allows")
        self.left -= size
        self.spent += size


@cache
def _get_half_of_memory() -> int:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min((memory, *_read_cgroup_limits())) // 2


def _read_cgroup_limits() -> tuple[int, ...]:
    """Return the limits of memory of this process's cgroup and of those above it, in bytes."""
    try:
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        found = [limit for group in groups if len(group) == 3 for limit in _find_limits(*group)]
    except OSError:  # not Linux
        return ()
    return tuple(found)


def _find_limits(number: str, controllers: str, path: str) -> Iterator[int]:
    """Yield the limits on the path of one cgroup, of version 2 or 1 (cgroups(7))."""
    if number == "0":
        root, name = CGROUPS, "memory.max"
    elif "memory" in controllers.split(","):
        root, name = CGROUPS / "memory", "memory.limit_in_bytes"
    else:
        return
    below = root / path.strip("/")
    for folder in (below, *below.parents):
        if folder.is_relative_to(root) and (file := folder / name).is_file():
            text = file.read_text().strip()
            if text.isdigit():
                yield int(text)


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
