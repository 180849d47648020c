"""Take a snapshot: walk the folder and check its size, then read the files that changed.

The walk checks the limits before any file is read. A file is read once per state: size, inode,
mtime and ctime are stored with its content name, but not those of a file so recent that it may
change again within a clock tick.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgpack
from msgspec import Struct, field

from scenarios.workspace.blobs import BlobStore, write_atomic_file
from scenarios.workspace.ignore_rules import IgnoreRules
from scenarios.workspace.manifest import (
    NAME_ESCAPES,
    ManifestEntry,
    SnapshotManifest,
    hash_snapshot_data,
)
from traces.redaction.secret_scan import MAX_SCANNED_BYTES, SecretFileScanner

MAX_BYTES = 256 << 20
MAX_FILES = 50_000
GONE_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)
"""Errors of opening or reading a path that is no longer a file."""
RECENT_NS = 2_000_000_000
"""Nanoseconds; longer than the timestamp granularity of any file system."""

type FileState = tuple[int, int, int, int]
type ProgressCallback = Callable[[int, int], object]
"""Called with the number of files done and the total."""


class SecretFileError(ValueError):
    """A file contains a secret and is not stored."""


class SnapshotSizeError(ValueError):
    """The folder is over a limit; nothing was stored."""


class SnapshotLimits(Struct, frozen=True, kw_only=True):
    """Limits on the stored bytes and files."""

    bytes: int = MAX_BYTES
    files: int = MAX_FILES


class FolderSnapshot(Struct, frozen=True, kw_only=True):
    """A snapshot, and the paths that it lacks."""

    name: str
    manifest: SnapshotManifest
    files_read: int
    """Number of files that had to be read."""
    changed: tuple[str, ...] = ()
    """Paths that changed or vanished during the walk; the stored state is one of several."""
    redacted: tuple[str, ...] = ()
    """Source files whose secrets are replaced in what was stored."""
    special: tuple[str, ...] = ()
    """Sockets, devices, pipes and unreadable paths."""


class FolderWalk(Struct):
    """The entries found, before any file is read."""

    entries: list[tuple[ManifestEntry, os.stat_result | None]] = field(default_factory=list)
    special: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    bytes: int = 0
    files: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes below each top-level entry of the folder."""


def take_snapshot(
    root: Path,
    blobs: BlobStore,
    *,
    hidden: frozenset[Path] = frozenset(),
    limits: SnapshotLimits | None = None,
    progress: ProgressCallback = lambda done, total: None,
    scanner: SecretFileScanner | None = None,
) -> FolderSnapshot:
    """Take the snapshot of a folder; the absolute paths in `hidden` are skipped.

    Files in which the scanner finds secrets are left out, and named in the manifest; of source code
    and prose the text with placeholders is stored. Raises
    SnapshotSizeError if the folder is over a limit, ValueError if its rules cannot be read.
    """
    walk = walk_folder(root, IgnoreRules.from_folder(root), hidden, limits or SnapshotLimits())
    reader = _ContentReader(root, blobs, scanner)
    entries = []
    for done, (entry, seen) in enumerate(walk.entries):
        progress(done, len(walk.entries))
        if seen is None:
            entries.append(entry)
        elif (stored := reader.read_content(entry, seen)) is not None:
            entries.append(stored)
    reader.save_known_contents()
    manifest = SnapshotManifest(entries=tuple(entries))
    return FolderSnapshot(
        name=blobs.save_manifest(manifest),
        manifest=manifest,
        files_read=reader.read,
        changed=(*walk.gone, *reader.changed),
        redacted=tuple(reader.redacted),
        special=(*walk.special, *reader.refused),
    )


def walk_folder(
    root: Path, rules: IgnoreRules, hidden: frozenset[Path], limits: SnapshotLimits
) -> FolderWalk:
    """List a folder without reading its files. Raises SnapshotSizeError if it is over a limit."""
    walk = FolderWalk()
    _walk_folder(root, "", rules, frozenset(map(str, hidden)), walk, limits)
    return walk


def _walk_folder(
    root: Path,
    below: str,
    rules: IgnoreRules,
    hidden: frozenset[str],
    walk: FolderWalk,
    limits: SnapshotLimits,
) -> None:
    folder = root / below
    try:
        info = folder.lstat()
    except FileNotFoundError:
        walk.gone.append(below)
        return
    mode, mtime = stat.S_IMODE(info.st_mode), info.st_mtime_ns
    walk.entries.append(
        (ManifestEntry(path=below or ".", kind="folder", mode=mode, mtime=mtime), None)
    )
    for each in _scan_sorted(folder, below, walk):
        name = f"{below}/{each.name}" if below else each.name
        if each.path in hidden:
            continue
        is_folder = each.is_dir(follow_symlinks=False)
        if why := rules.find_exclusion(name, folder=is_folder):
            walk.entries.append(
                (ManifestEntry(path=name, kind="out", target=why, folder=is_folder), None)
            )
        elif is_folder:
            _walk_folder(root, name, rules, hidden, walk, limits)
        else:
            _add_leaf(each, name, walk, limits)


def _scan_sorted(folder: Path, below: str, walk: FolderWalk) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return sorted(listing, key=lambda each: each.name)
    except PermissionError:
        walk.special.append(below)
        return []
    except FileNotFoundError:
        walk.gone.append(below)
        return []


def _add_leaf(each: os.DirEntry[str], name: str, walk: FolderWalk, limits: SnapshotLimits) -> None:
    try:
        info = each.stat(follow_symlinks=False)
        target = os.readlink(each.path) if each.is_symlink() else ""  # noqa: PTH115
    except FileNotFoundError:
        walk.gone.append(name)
        return
    mode, mtime = stat.S_IMODE(info.st_mode), info.st_mtime_ns
    if target:
        link = ManifestEntry(path=name, kind="link", mode=mode, mtime=mtime, target=target)
        walk.entries.append((link, None))
    elif stat.S_ISREG(info.st_mode):
        file = ManifestEntry(path=name, kind="file", mode=mode, mtime=mtime, size=info.st_size)
        walk.entries.append((file, info))
        _count_size(name, info.st_size, walk, limits)
    else:
        walk.special.append(name)


def _count_size(name: str, size: int, walk: FolderWalk, limits: SnapshotLimits) -> None:
    walk.bytes += size
    walk.files += 1
    top = name.partition("/")[0]
    walk.sizes[top] = walk.sizes.get(top, 0) + size
    if walk.bytes > limits.bytes or walk.files > limits.files:
        largest = max(walk.sizes, key=lambda each: walk.sizes[each])
        over = walk.bytes > limits.bytes
        limit = f"{limits.bytes >> 20} MB" if over else f"{limits.files} files"
        raise SnapshotSizeError(f"it is over {limit}; most of what was seen is in {largest}")


class _ContentReader:
    """Read the files whose content is not known from an earlier snapshot of the folder."""

    def __init__(self, root: Path, blobs: BlobStore, scanner: SecretFileScanner | None) -> None:
        self._root, self._blobs, self._scanner = root, blobs, scanner
        scanner_digest = scanner.config_digest if scanner else b""
        self._memory = blobs.root / "seen" / hash_snapshot_data(os.fsencode(root) + scanner_digest)
        self._known = _load_known_contents(self._memory)
        self._now: dict[str, tuple[FileState, str]] = {}
        self._young = time.time_ns() - RECENT_NS
        self.read = 0
        self.changed: list[str] = []
        self.refused: list[str] = []
        self.redacted: list[str] = []

    def read_content(self, entry: ManifestEntry, seen: os.stat_result) -> ManifestEntry | None:
        """Return the entry with its content name; None if the file is gone or unreadable."""
        state = _to_file_state(seen)
        known = self._known.get(entry.path)
        if known is not None and known[0] == state and self._blobs.has_blob(known[1]):
            name, after = known[1], seen
        else:
            try:
                name, after = self._store_file(f"{self._root}/{entry.path}")
            except SecretFileError:
                return ManifestEntry(path=entry.path, kind="out", mode=entry.mode, target="found")
            except PermissionError:
                self.refused.append(entry.path)
                return None
            except OSError as error:
                if error.errno not in GONE_ERRNOS:
                    raise
                self.changed.append(entry.path)
                return None
            if _to_file_state(after) != state:
                self.changed.append(entry.path)
        if self._blobs.is_redacted(name):
            self.redacted.append(entry.path)
        if max(after.st_mtime_ns, after.st_ctime_ns) < self._young:
            self._now[entry.path] = _to_file_state(after), name
        return ManifestEntry(
            path=entry.path,
            kind="file",
            mode=entry.mode,
            mtime=after.st_mtime_ns,
            target=name,
            size=after.st_size,
        )

    def _store_file(self, path: str) -> tuple[str, os.stat_result]:
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            clean = self._redact_secrets(path, source)
            name = self._blobs.put_blob(source) if clean is None else self._put_redacted(clean)
            self.read += 1
            return name, os.fstat(source)
        finally:
            os.close(source)

    def _redact_secrets(self, path: str, source: int) -> bytes | None:
        """Return the content without its secrets, None if it has none; rewinds the file.

        Raises SecretFileError if it may not be stored without them either.
        """
        if self._scanner is None:
            return None
        data = bytearray()
        while len(data) < MAX_SCANNED_BYTES and (
            piece := os.read(source, MAX_SCANNED_BYTES - len(data))
        ):
            data += piece
        os.lseek(source, 0, os.SEEK_SET)
        name = path.rpartition("/")[2]
        if not self._scanner.has_secret(name, bytes(data)):
            return None
        clean = self._scanner.redact_source(name, bytes(data))
        if clean is None or len(clean) != os.fstat(source).st_size:
            raise SecretFileError
        return clean

    def _put_redacted(self, clean: bytes) -> str:
        name = self._blobs.put_bytes(clean)
        self._blobs.mark_redacted(name)
        return name

    def save_known_contents(self) -> None:
        """Save the content name of each file, and which placeholder stands for which secret."""
        if self._scanner is not None:
            self._blobs.save_redactions(self._scanner.records)
        if self._now != self._known:
            write_atomic_file(self._memory, msgpack.packb(self._now, unicode_errors=NAME_ESCAPES))


def _to_file_state(info: os.stat_result) -> FileState:
    return info.st_size, info.st_ino, info.st_mtime_ns, info.st_ctime_ns


def _load_known_contents(memory: Path) -> Mapping[str, tuple[FileState, str]]:
    """Load the names saved by an earlier snapshot; empty if the file is missing or damaged."""
    try:
        known = msgpack.unpackb(memory.read_bytes(), unicode_errors=NAME_ESCAPES)
    except (FileNotFoundError, ValueError):
        return {}
    return {path: ((*state,), name) for path, (state, name) in known.items()}
