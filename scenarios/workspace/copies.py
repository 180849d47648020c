"""Making a folder again from its snapshot: same contents, modes, links and times."""

import os
from pathlib import Path

from scenarios.workspace.blobs import Blobs
from scenarios.workspace.manifest import Entry, Manifest


def restore(
    manifest: Manifest, blobs: Blobs, copy: Path, *, origin: Path, linked: bool = False
) -> tuple[Entry, ...]:
    """Fill the new folder `copy`; ValueError where a content is gone or damaged.

    What is not kept becomes an empty place, on which something can be mounted, or, `linked`, a
    symbolic link to where it still is. What is no longer there leaves nothing. Returns what has
    a place.
    """
    placed = []
    for entry in manifest.entries:
        path = copy / entry.path
        match entry.kind:
            case "folder":
                path.mkdir(exist_ok=entry.path == ".", mode=0o700)
            case "file":
                blobs.write(entry.target, path)
                path.chmod(entry.mode)
                os.utime(path, ns=(entry.mtime, entry.mtime))
            case "link":
                path.symlink_to(entry.target)
                os.utime(path, ns=(entry.mtime, entry.mtime), follow_symlinks=False)
            case "out" if (origin / entry.path).exists():
                _place(entry, path, origin if linked else None)
                placed.append(entry)
    for entry in reversed(manifest.entries):  # last, since filling a folder changes its time
        if entry.kind == "folder":
            (copy / entry.path).chmod(entry.mode)
            os.utime(copy / entry.path, ns=(entry.mtime, entry.mtime))
    return tuple(placed)


def _place(entry: Entry, path: Path, origin: Path | None) -> None:
    if origin is not None:
        path.symlink_to(origin / entry.path)
    elif entry.folder:
        path.mkdir()
    else:
        path.touch()


def changed(manifest: Manifest, folder: Path) -> tuple[str, ...]:
    """The files of a snapshot that a folder does not have as they were: by size and time."""
    return tuple(
        entry.path
        for entry in manifest.entries
        if entry.kind == "file" and not _alike(entry, folder / entry.path)
    )


def _alike(entry: Entry, path: Path) -> bool:
    try:
        info = path.lstat()
    except OSError:
        return False
    return (info.st_size, info.st_mtime_ns) == (entry.size, entry.mtime)
