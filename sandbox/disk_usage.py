"""Measure how much an agent has written, so that it cannot fill the machine's disk."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from sandbox.deep_folders import walk_folders

BLOCK = 512
"""The unit of `st_blocks` in bytes."""


def exceeds_disk_limit(changed: Iterable[Path], limit: int) -> bool:
    """Return whether these folders take more than `limit` bytes; files that vanish are ignored.

    Open but deleted files are ignored too, and unreadable folders (only if not root).
    """
    size = 0
    for folder in changed:
        for _, entries in walk_folders(str(folder)):
            for entry in entries:
                with suppress(OSError):  # just removed
                    size += entry.stat(follow_symlinks=False).st_blocks * BLOCK
            if size > limit:
                return True
    return False
