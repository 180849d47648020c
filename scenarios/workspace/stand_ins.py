"""Stand-ins: names that an agent saw in its folder and whose content is not its own.

The store and the tape being written may lie in the folder that an agent lists. A copy of the folder
has the same names, sizes, modes, times and links there, and none of the contents.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from scenarios.workspace.blobs import BlobStore, write_atomic_file
from scenarios.workspace.manifest import ManifestEntry, SnapshotManifest, hash_snapshot_data

MAX_STAND_INS = 20_000
IGNORE_FILE = ".gitignore"
"""The content of this file is kept: without it, git would list its folder."""
MAX_IGNORE_BYTES = 4096


def list_stand_ins(root: Path, hidden: Iterable[Path]) -> tuple[ManifestEntry, ...]:
    """Return the hidden paths below a folder and all that is below them, up to MAX_STAND_INS."""
    found = (entry for path in sorted(hidden) for entry in _list_below(root, path))
    return tuple(islice(found, MAX_STAND_INS))


def _list_below(root: Path, path: Path) -> Iterator[ManifestEntry]:
    if not path.is_relative_to(root) or path == root:
        return
    try:
        info = path.lstat()
        inside = sorted(path.iterdir()) if stat.S_ISDIR(info.st_mode) else []
    except OSError:  # gone or not ours to read
        return
    name, mode = str(path.relative_to(root)), stat.S_IMODE(info.st_mode)
    if stat.S_ISDIR(info.st_mode):
        yield ManifestEntry(path=name, kind="folder", mode=mode, mtime=info.st_mtime_ns)
    elif stat.S_ISREG(info.st_mode):
        kept = _read_ignore_file(path) if path.name == IGNORE_FILE else ""
        yield ManifestEntry(
            path=name,
            kind="file",
            mode=mode,
            mtime=info.st_mtime_ns,
            target=kept,
            size=info.st_size,
        )
    elif stat.S_ISLNK(info.st_mode):
        target = os.fsdecode(path.readlink())
        yield ManifestEntry(path=name, kind="link", mtime=info.st_mtime_ns, target=target)
    for each in inside:
        yield from _list_below(root, each)


def _read_ignore_file(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MAX_IGNORE_BYTES).decode("utf-8", "surrogateescape")


def place_stand_ins(entries: Iterable[ManifestEntry], copy: Path) -> None:
    """Make the names in a copy; what it already has, or has no folder for, stays as it is."""
    made = list[tuple[Path, int]]()
    times = dict[Path, int]()
    for entry in entries:
        path = copy / entry.path
        if ".." in path.parts or path.is_symlink() or path.exists():
            continue
        if path.parent != copy and path.parent not in times:
            continue
        times.setdefault(path.parent, path.parent.stat().st_mtime_ns)
        if entry.kind == "link":
            path.symlink_to(entry.target)
            os.utime(path, ns=(entry.mtime, entry.mtime), follow_symlinks=False)
            continue
        if entry.kind == "folder":
            path.mkdir(mode=0o700)
        else:
            path.write_text(entry.target, "utf-8", "surrogateescape", newline="")
            os.truncate(path, entry.size)
        times[path] = entry.mtime
        made.append((path, entry.mode))
    for path, mode in made:
        path.chmod(mode)
    for path in reversed(times):
        os.utime(path, ns=(times[path], times[path]))


def remove_stand_ins(entries: Sequence[ManifestEntry], copy: Path) -> None:
    """Remove what is left of the names in a copy; a file that was written to stays."""
    for entry in reversed(entries):
        path = copy / entry.path
        if ".." in path.parts or not path.parent.resolve().is_relative_to(copy.resolve()):
            continue
        try:
            if entry.kind == "folder":
                path.rmdir()
            elif path.lstat().st_mtime_ns == entry.mtime:
                path.unlink()
        except OSError:  # gone, or a folder with files of the agent
            continue


def save_stand_ins(blobs: BlobStore, id: str, entries: tuple[ManifestEntry, ...]) -> None:
    """Store the names that the agent of a recording saw."""
    path = _names_path(blobs, id)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomic_file(path, SnapshotManifest(entries=entries).encode())


def load_stand_ins(blobs: BlobStore, id: str) -> tuple[ManifestEntry, ...]:
    """Return the names of a recording; empty if none are stored. Raises ValueError if damaged."""
    path = _names_path(blobs, id)
    return SnapshotManifest.decode(path.read_bytes()).entries if path.is_file() else ()


def _names_path(blobs: BlobStore, id: str) -> Path:
    return blobs.root / "names" / hash_snapshot_data(id.encode())
