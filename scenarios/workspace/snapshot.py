"""Taking a snapshot: one walk that only looks, then one that reads what has changed.

The walk finds out whether the folder is within the limits before anything is read. A file is
read once for each state it was in: size, inode and both times are remembered with its content,
but not those of a file so young that it may change again within a tick of the clock.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgpack

from scenarios.workspace.blobs import Blobs, replace
from scenarios.workspace.manifest import ESCAPED, Entry, Manifest, digest
from scenarios.workspace.rules import Rules

MAX_BYTES = 256 << 20
MAX_FILES = 50_000
NO_LONGER = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)
"""What opening or reading says of a path that is no file any more."""
YOUNG = 2_000_000_000
"""Nanoseconds; more than the clock of any file system ticks."""

type State = tuple[int, int, int, int]
type Progress = Callable[[int, int], object]
"""Is told how many files of how many were looked at."""


class TooLarge(ValueError):
    """The folder is over a limit; nothing was kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is kept at most."""

    bytes: int = MAX_BYTES
    files: int = MAX_FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A snapshot, and what of the folder is not in it."""

    name: str
    manifest: Manifest
    read: int
    """How many files had to be read."""
    changed: tuple[str, ...] = ()
    """What changed or went while it was read; its state is one of several."""
    special: tuple[str, ...] = ()
    """Sockets, devices and pipes, and what we may not read."""


@dataclass(slots=True)
class _Walk:
    """What was found, before anything is read."""

    entries: list[tuple[Entry, os.stat_result | None]] = field(default_factory=list)
    special: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    bytes: int = 0
    files: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes below each entry of the folder itself."""


def take(
    root: Path,
    blobs: Blobs,
    *,
    hidden: frozenset[Path] = frozenset(),
    limits: Limits | None = None,
    progress: Progress = lambda done, total: None,
) -> Taken:
    """The snapshot of a folder; what is `hidden` (whole paths) is as if it were not there.

    TooLarge where it is over a limit, ValueError where its rules cannot be read.
    """
    walk = _Walk()
    _walk(root, "", Rules.of(root), hidden, walk, limits or Limits())
    reader = _Reader(root, blobs)
    entries = []
    for done, (entry, seen) in enumerate(walk.entries):
        progress(done, len(walk.entries))
        if seen is None:
            entries.append(entry)
        elif (whole := reader.content(entry, seen)) is not None:
            entries.append(whole)
    reader.remember()
    manifest = Manifest(entries=tuple(entries))
    return Taken(
        name=blobs.keep(manifest),
        manifest=manifest,
        read=reader.read,
        changed=(*walk.gone, *reader.changed),
        special=(*walk.special, *reader.refused),
    )


def _walk(
    root: Path, below: str, rules: Rules, hidden: frozenset[Path], walk: _Walk, limits: Limits
) -> None:
    folder = root / below
    try:
        info = folder.lstat()
    except FileNotFoundError:
        walk.gone.append(below)
        return
    mode, mtime = stat.S_IMODE(info.st_mode), info.st_mtime_ns
    walk.entries.append((Entry(path=below or ".", kind="folder", mode=mode, mtime=mtime), None))
    for each in _sorted(folder, below, walk):
        name = f"{below}/{each.name}" if below else each.name
        if hidden and root / name in hidden:
            continue
        is_folder = each.is_dir(follow_symlinks=False)
        if why := rules.leaves_out(name, folder=is_folder):
            walk.entries.append((Entry(path=name, kind="out", target=why, folder=is_folder), None))
        elif is_folder:
            _walk(root, name, rules, hidden, walk, limits)
        else:
            _leaf(each, name, walk, limits)


def _sorted(folder: Path, below: str, walk: _Walk) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda each: each.name)
    except PermissionError:
        walk.special.append(below)
        return []
    except FileNotFoundError:
        walk.gone.append(below)
        return []


def _leaf(each: os.DirEntry[str], name: str, walk: _Walk, limits: Limits) -> None:
    try:
        info = each.stat(follow_symlinks=False)
        target = os.readlink(each.path) if each.is_symlink() else ""  # noqa: PTH115
    except FileNotFoundError:
        walk.gone.append(name)
        return
    mode, mtime = stat.S_IMODE(info.st_mode), info.st_mtime_ns
    if target:
        link = Entry(path=name, kind="link", mode=mode, mtime=mtime, target=target)
        walk.entries.append((link, None))
    elif stat.S_ISREG(info.st_mode):
        file = Entry(path=name, kind="file", mode=mode, mtime=mtime, size=info.st_size)
        walk.entries.append((file, info))
        _weigh(name, info.st_size, walk, limits)
    else:
        walk.special.append(name)


def _weigh(name: str, size: int, walk: _Walk, limits: Limits) -> None:
    walk.bytes += size
    walk.files += 1
    top = name.partition("/")[0]
    walk.sizes[top] = walk.sizes.get(top, 0) + size
    if walk.bytes > limits.bytes or walk.files > limits.files:
        largest = max(walk.sizes, key=lambda each: walk.sizes[each])
        over = walk.bytes > limits.bytes
        most = f"{limits.bytes >> 20} MB" if over else f"{limits.files} files"
        raise TooLarge(f"it is over {most}; most of what was seen is in {largest}")


class _Reader:
    """Reads the files whose content is not known from an earlier snapshot of the folder."""

    def __init__(self, root: Path, blobs: Blobs) -> None:
        self._root, self._blobs = root, blobs
        self._memory = blobs.root / "seen" / digest(os.fsencode(root))
        self._known = _known(self._memory)
        self._now: dict[str, tuple[State, str]] = {}
        self._young = time.time_ns() - YOUNG
        self.read = 0
        self.changed: list[str] = []
        self.refused: list[str] = []

    def content(self, entry: Entry, seen: os.stat_result) -> Entry | None:
        """The entry with the name of its content; None where it is gone or not ours to read."""
        state = _state(seen)
        known = self._known.get(entry.path)
        if known is not None and known[0] == state and self._blobs.has(known[1]):
            name, after = known[1], seen
        else:
            try:
                name, after = self._read(self._root / entry.path)
            except PermissionError:
                self.refused.append(entry.path)
                return None
            except OSError as error:
                if error.errno not in NO_LONGER:
                    raise
                self.changed.append(entry.path)
                return None
            if _state(after) != state:
                self.changed.append(entry.path)
        if max(after.st_mtime_ns, after.st_ctime_ns) < self._young:
            self._now[entry.path] = _state(after), name
        return Entry(
            path=entry.path,
            kind="file",
            mode=entry.mode,
            mtime=after.st_mtime_ns,
            target=name,
            size=after.st_size,
        )

    def _read(self, path: Path) -> tuple[str, os.stat_result]:
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            name = self._blobs.put(source)
            self.read += 1
            return name, os.fstat(source)
        finally:
            os.close(source)

    def remember(self) -> None:
        """Keep which file had which content."""
        if self._now != self._known:
            replace(self._memory, msgpack.packb(self._now, unicode_errors=ESCAPED))


def _state(info: os.stat_result) -> State:
    return info.st_size, info.st_ino, info.st_mtime_ns, info.st_ctime_ns


def _known(memory: Path) -> Mapping[str, tuple[State, str]]:
    """What an earlier snapshot knew; nothing where that is lost or damaged."""
    try:
        found = msgpack.unpackb(memory.read_bytes(), unicode_errors=ESCAPED)
    except (FileNotFoundError, ValueError):
        return {}
    return {path: ((*state,), name) for path, (state, name) in found.items()}
