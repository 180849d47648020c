"""How much a workspace holds, so that an agent cannot fill the disk that it shares with us."""

import os
from pathlib import Path

BLOCK = 512
"""What `st_blocks` counts in."""


def outgrown(folder: Path, limit: int) -> bool:
    """Whether a folder takes more than `limit` bytes; what vanishes meanwhile counts nothing."""
    weight, folders = 0, [str(folder)]
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
