"""Processes of this machine as /proc shows them: parents, commands and sockets (proc(5)).

What another user's process hides, and what ended meanwhile, is left out.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class RunningProcess(NamedTuple):
    """A process and the words of its command."""

    pid: int
    command: tuple[str, ...]

    def __str__(self) -> str:
        """`python3 hub.py --port 7 (process 77)`."""
        return f"{' '.join(self.command)} (process {self.pid})"


def read_command(pid: int) -> tuple[str, ...]:
    """Return the words of a process's command; empty if it ended, or is the kernel's."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in words[:-1])


def list_descendants(root: int) -> list[int]:
    """Return the processes below `root`, parents first."""
    found = list(_list_children(root))
    for pid in found:
        found += _list_children(pid)
    return found


def _list_children(pid: int) -> Iterator[int]:
    """Yield the children of all threads of a process (kernels with CONFIG_PROC_CHILDREN)."""
    threads = PROC / str(pid) / "task"
    try:
        names = os.listdir(threads)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        try:
            children = (threads / name / "children").read_bytes()
        except OSError:
            continue
        yield from map(int, children.split())


def _list_pids() -> Iterator[int]:
    return (int(name) for name in os.listdir(PROC) if name.isdecimal())  # noqa: PTH208


def list_open_files(pid: int) -> dict[int, str]:
    """Map a process's descriptors to what they are: `socket:[77]`, `pipe:[78]`, a path."""
    folder, found = PROC / str(pid) / "fd", dict[int, str]()
    try:
        numbers = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return {}
    for number in numbers:
        try:
            found[int(number)] = os.readlink(folder / number)  # noqa: PTH115
        except OSError:
            continue
    return found


def find_socket_owner(inode: str) -> RunningProcess | None:
    """Return a process that has the socket with this inode open."""
    name = f"socket:[{inode}]"
    for pid in _list_pids():
        if name in list_open_files(pid).values():
            return RunningProcess(pid, read_command(pid))
    return None
