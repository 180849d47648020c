"""How much an agent has written, so that it cannot fill the disk that it shares with us."""

import os
from collections.abc import Iterable
from pathlib import Path

BLOCK = 512
"""What `st_blocks` counts in."""


def outgrown(changed: Iterable[Path], limit: int) -> bool:
    """Whether these folders take more than `limit` bytes; what vanishes meanwhile counts nothing.

    Nor does what is open but deleted, or lies where we may not look (only where we are not root).
    """
    weight, folders = 0, [str(folder) for folder in changed]
    while folders and weight <= limit:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    weight += entry.stat(follow_symlinks=False).st_blocks * BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue
    return weight > limit
