"""Limits of an isolated run: memory, processes and disk, watched by its first process.

The first process of a PID namespace sees all others and may kill them, whoever they are; that needs
no cgroup, which most users may not make. RLIMIT_AS is no such limit: Node, Go and Java reserve
address space that they never use. Standard library only, with few imports: every run waits for
this.
"""

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

POLL_SECONDS = 0.25
"""Seconds between two looks; a run may exceed a limit by what it does in them."""
DISK_SHARE = 20
"""Disk is measured at most one part in this of the time."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BLOCK = 512


class RunLimits(NamedTuple):
    """Most of each that all processes of a run may use together."""

    memory: int
    """Bytes that belong to one process each, and of /dev/shm."""
    processes: int
    disk: int
    """Bytes of new and changed files, temporary ones included."""


class LimitWatch:
    """Finds out whether the processes of this PID namespace use more than a run may."""

    def __init__(self, limits: RunLimits, folders: list[str]) -> None:
        """Watch for these limits; in `folders` is what the run writes."""
        self._limits, self._next, self._next_disk = limits, 0.0, 0.0
        outer = [each for each in folders if not any(each.startswith(f"{f}/") for f in folders)]
        for each in outer:
            os.makedirs(each, exist_ok=True)  # noqa: PTH103
        self._folders = [os.open(each, os.O_RDONLY | os.O_CLOEXEC) for each in outer]

    def find_excess(self) -> str | None:
        """Return the name of an exceeded limit, as in RunLimits; None if there is none.

        It looks at most once in POLL_SECONDS, however often it is called.
        """
        if time.monotonic() < self._next:
            return None
        self._next = time.monotonic() + POLL_SECONDS
        pids = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
        if len(pids) > self._limits.processes:
            return "processes"
        shared = os.statvfs("/dev/shm")  # noqa: S108
        memory = (shared.f_blocks - shared.f_bfree) * shared.f_frsize
        if memory + sum(map(_read_own_memory, pids)) > self._limits.memory:
            return "memory"
        began = time.monotonic()
        if began < self._next_disk:
            return None
        used = sum(self._list_sizes())
        self._next_disk = time.monotonic() + DISK_SHARE * (time.monotonic() - began)
        return "disk" if used > self._limits.disk else None

    def _list_sizes(self) -> Iterator[int]:
        for outer in self._folders:
            for _, _, names, folder in os.fwalk(".", dir_fd=outer):
                for name in names:
                    try:
                        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    except OSError:
                        continue  # removed meanwhile
                    yield found.st_blocks * _BLOCK


def _read_own_memory(pid: str) -> int:
    """Return the bytes that a process shares with no other; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123
            _, resident, shared, *_ = file.read().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE
