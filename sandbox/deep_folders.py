"""Folders of any depth: walk them all, or cut them to what ordinary programs can open.

A program makes deeper folders than a path can name (PATH_MAX), or than a process can hold open.
Standard library only, with few imports: the supervisor of each run loads this.
"""

import os
from collections.abc import Iterator

LONGEST_PATH, MOST_LEVELS = 2000, 200
"""Bytes and folders of a path below the folder that is cut."""
_HALF_PATH = 2000
"""Bytes of a path from which on a folder is opened and named by its descriptor; of 4096."""


def walk_folders(folder: str) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Yield each folder below one, and itself, with its entries; those that vanish are left out.

    The paths are to be used before the next one is asked for: deep ones name a descriptor.
    """
    waiting = [folder]
    while waiting:
        at = waiting.pop()
        try:
            if len(os.fsencode(at)) > _HALF_PATH:
                fd = os.open(at, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    yield from walk_folders(f"/proc/self/fd/{fd}/")
                finally:
                    os.close(fd)
                continue
            with os.scandir(at) as scanned:
                entries = list(scanned)
            folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        yield at, entries
        waiting += folders


def cut_deep_folders(folder: str) -> int:
    """Remove folders that are too deep, or have too long a path; return how many.

    A folder that is closed, has vanished or is none any more has nothing to remove.

    Raises OSError if one cannot be removed.
    """
    removed, waiting = 0, [(folder, 0)]
    while waiting:
        at, level = waiting.pop()
        if level > MOST_LEVELS or len(os.fsencode(at)) - len(os.fsencode(folder)) > LONGEST_PATH:
            remove_folder(at)
            removed += 1
            continue
        try:
            with os.scandir(at) as entries:
                waiting += [(e.path, level + 1) for e in entries if e.is_dir(follow_symlinks=False)]
        except (PermissionError, FileNotFoundError, NotADirectoryError):
            continue
    return removed


def remove_folder(folder: str) -> None:
    """Remove a folder of any depth and any modes. Raises OSError if it is still there."""
    import subprocess  # the supervisor, which waits for each import, removes nothing

    for words in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        subprocess.run([*words, "--", folder], check=False, stderr=subprocess.DEVNULL)
    if os.path.lexists(folder):
        raise OSError(f"{folder[:200]} cannot be removed")
