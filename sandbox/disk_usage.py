"""Measure how much an agent has written, so that it cannot fill the machine's disk."""

import os
from collections.abc import Iterable
from pathlib import Path

BLOCK = 512
"""The unit of `st_blocks` in bytes."""


def exceeds_disk_limit(changed: Iterable[Path], limit: int) -> bool:
    """Return whether these folders take more than `limit` bytes; files that vanish are ignored.

    Open but deleted files are ignored too, and unreadable folders (only if not root).
    """
    size, folders = 0, [str(folder) for folder in changed]
    while folders and size <= limit:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    size += entry.stat(follow_symlinks=False).st_blocks * BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue
    return size > limit
