"""What a run left in its folder: the paths that differ from a snapshot, and their contents.

A file is unchanged if its size and mtime are those of the snapshot and its ctime is older than the
run, as no program sets a ctime. All others are read. Contents are searched for secrets and bounded:
an entry without a stored content has the kind `out` and the reason.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, Self

import msgpack
import zstandard
from msgspec import Struct
from msgspec.structs import astuple

from scenarios.workspace.blobs import BlobStore, HashOnlyStore, write_atomic_file
from scenarios.workspace.edits import name_edits
from scenarios.workspace.ignore_rules import IgnoreRules
from scenarios.workspace.manifest import (
    MAX_MANIFEST_BYTES,
    NAME_ESCAPES,
    ManifestEntry,
    SnapshotManifest,
    hash_snapshot_data,
)
from scenarios.workspace.snapshot import SnapshotLimits, walk_folder
from traces.redaction.secret_scan import SecretFileScanner

LEFT_FORMAT = 1
MAX_LEFT_FILES = 2_000
"""Most paths of a run; the others are counted."""
MAX_LEFT_BYTES = 1 << 20
"""Largest content that is stored."""
MAX_LEFT_TOTAL = 1 << 24
"""Most bytes stored for one run."""
WALK_LIMITS = SnapshotLimits(bytes=1 << 40, files=1_000_000)
REPOSITORY = ".git"
"""Folder of a version control, whose contents are not stored."""
OWNER_EXECUTE = 0o100

type FoundEntry = tuple[ManifestEntry, os.stat_result | None]
"""A path of a folder, and the state of a file."""

type LeftOutReason = Literal["found", "secret", "large", "repository", "unreadable"]
"""Why a content is not stored. `found`: it has a secret. `secret`: its name is that of a secret."""


class LeftFiles(Struct, frozen=True, kw_only=True):
    """The difference between a snapshot and a folder at the end of a run."""

    run: str
    start: str
    """The name of the snapshot."""
    changed: tuple[ManifestEntry, ...] = ()
    """New and changed files and links."""
    removed: tuple[str, ...] = ()
    more: int = 0
    """Number of further paths that are not listed."""

    def encode(self) -> bytes:
        """Encode as bytes that `decode` reads."""
        rows = [astuple(entry) for entry in self.changed]
        row = (LEFT_FORMAT, self.run, self.start, rows, self.removed, self.more)
        return zstandard.compress(msgpack.packb(row, unicode_errors=NAME_ESCAPES), 3)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decode. Raises ValueError if the bytes are damaged or of a newer format."""
        try:
            plain = zstandard.ZstdDecompressor().decompress(
                data, max_output_size=MAX_MANIFEST_BYTES
            )
            number, *row = msgpack.unpackb(plain, unicode_errors=NAME_ESCAPES)
            if number > LEFT_FORMAT:
                raise ValueError(f"format {number}, this version reads up to {LEFT_FORMAT}")
            run, start, rows, removed, more = row
            names = ManifestEntry.__struct_fields__
            changed = tuple(ManifestEntry(**dict(zip(names, each, strict=True))) for each in rows)
        except (zstandard.ZstdError, ValueError, TypeError) as error:
            raise ValueError(f"a damaged list of left files: {error}") from None
        return cls(run=run, start=start, changed=changed, removed=tuple(removed), more=more)


class FolderAtStart(Struct, frozen=True, kw_only=True):
    """A folder in which a run begins."""

    snapshot: str
    manifest: SnapshotManifest
    since: int = 0
    """When the folder was as in the manifest, in nanoseconds since the epoch."""
    hidden: frozenset[Path] = frozenset()
    """Absolute paths that do not count."""


def list_folder_entries(folder: Path, hidden: frozenset[Path]) -> Sequence[FoundEntry]:
    """List what is in a folder now. Raises OSError or ValueError if it cannot be read."""
    try:
        rules = IgnoreRules.from_folder(folder)
    except ValueError:  # the run wrote it
        rules = IgnoreRules.built_in()
    return walk_folder(folder, rules, hidden, WALK_LIMITS).entries


def list_differing_entries(
    folder: Path, before: SnapshotManifest, after: SnapshotManifest, hidden: frozenset[Path]
) -> Iterator[FoundEntry]:
    """Yield the entries of `after`, with the state of those that differ from `before`."""
    differing = {path for path in name_edits(before, after) if folder / path not in hidden}
    for entry in after.entries:
        try:
            yield entry, (folder / entry.path).lstat() if entry.path in differing else None
        except OSError:  # gone since
            yield entry, None


def collect_left_files(
    run: str,
    folder: Path,
    start: FolderAtStart,
    entries: Iterable[FoundEntry],
    blobs: BlobStore,
    make_scanner: Callable[[], SecretFileScanner],
) -> LeftFiles:
    """Compare the entries of a folder with its start, and store the contents of what differs.

    A file without a state counts as unchanged. `make_scanner` is called if a content is to be
    stored.
    """
    old = {entry.path: entry for entry in start.manifest.entries}
    reader = _LeftFileReader(folder, start, blobs, make_scanner)
    changed, present = list[ManifestEntry](), set[str]()
    for entry, seen in entries:
        present.add(entry.path)
        if (kept := reader.read_change(entry, seen, old.get(entry.path))) is not None:
            changed.append(kept)
    removed = sorted(_list_removed(start, present, folder))
    listed = changed[:MAX_LEFT_FILES]
    gone = removed[: MAX_LEFT_FILES - len(listed)]
    return LeftFiles(
        run=run,
        start=start.snapshot,
        changed=tuple(listed),
        removed=tuple(gone),
        more=len(changed) + len(removed) - len(listed) - len(gone),
    )


def _list_removed(start: FolderAtStart, present: set[str], folder: Path) -> Iterator[str]:
    for entry in start.manifest.entries:
        is_gone = entry.kind in ("file", "link") and entry.path not in present
        if is_gone and folder / entry.path not in start.hidden:
            yield entry.path


class _LeftFileReader:
    """Read what changed, up to the bounds of one run."""

    def __init__(
        self,
        folder: Path,
        start: FolderAtStart,
        blobs: BlobStore,
        make_scanner: Callable[[], SecretFileScanner],
    ) -> None:
        self._folder, self._since, self._blobs = folder, start.since, blobs
        self._hashes = HashOnlyStore(blobs.root)
        self._make_scanner, self._scanner = make_scanner, None
        self._files, self._bytes = 0, 0

    _scanner: SecretFileScanner | None

    def read_change(
        self, entry: ManifestEntry, seen: os.stat_result | None, old: ManifestEntry | None
    ) -> ManifestEntry | None:
        """Return the entry of a changed path; None if it is as it was, or does not count."""
        if entry.kind == "link":
            same = old is not None and old.kind == "link" and old.target == entry.target
            return None if same else entry
        if entry.kind == "out":
            is_new = old is None and entry.target == "secret" and not entry.folder
            return entry if is_new else None
        if entry.kind != "file" or seen is None or self._is_untouched(seen, old):
            return None
        self._files += 1
        is_listed = self._files <= MAX_LEFT_FILES
        kept = self._read_file(entry, old) if is_listed else _leave_out(entry, "large")
        return None if old is not None and _is_same_content(kept, old) else kept

    def _is_untouched(self, seen: os.stat_result, old: ManifestEntry | None) -> bool:
        if old is None or seen.st_ctime_ns > self._since:
            return False
        if old.kind == "out":
            return True
        state = seen.st_size, seen.st_mtime_ns, stat.S_IMODE(seen.st_mode)
        return old.kind == "file" and state == (old.size, old.mtime, old.mode)

    def _read_file(self, entry: ManifestEntry, old: ManifestEntry | None) -> ManifestEntry:
        try:
            source = os.open(self._folder / entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return _leave_out(entry, "unreadable")
        try:
            if not stat.S_ISREG(os.fstat(source).st_mode):
                return _leave_out(entry, "unreadable")
            if old is not None and old.kind == "file" and old.size == entry.size:
                name = self._hashes.put_blob(source)
                if name == old.target:
                    return _name_content(entry, name)
                os.lseek(source, 0, os.SEEK_SET)
            return self._store_content(entry, source)
        except OSError:
            return _leave_out(entry, "unreadable")
        finally:
            os.close(source)

    def _store_content(self, entry: ManifestEntry, source: int) -> ManifestEntry:
        if REPOSITORY in entry.path.split("/")[:-1]:
            return _leave_out(entry, "repository")
        data = _read_whole(source, MAX_LEFT_BYTES + 1)
        if len(data) > MAX_LEFT_BYTES or self._bytes + len(data) > MAX_LEFT_TOTAL:
            return _leave_out(entry, "large")
        self._scanner = self._scanner or self._make_scanner()
        if self._scanner.has_secret(Path(entry.path).name, data):
            return _leave_out(entry, "found")
        self._bytes += len(data)
        return _name_content(entry, self._blobs.put_bytes(data), len(data))


def _is_same_content(now: ManifestEntry, old: ManifestEntry) -> bool:
    executable = (now.mode & OWNER_EXECUTE) == (old.mode & OWNER_EXECUTE)
    return now.kind == old.kind == "file" and now.target == old.target and executable


def _name_content(entry: ManifestEntry, name: str, size: int | None = None) -> ManifestEntry:
    return ManifestEntry(
        path=entry.path,
        kind="file",
        mode=entry.mode,
        mtime=entry.mtime,
        target=name,
        size=entry.size if size is None else size,
    )


def _leave_out(entry: ManifestEntry, why: LeftOutReason) -> ManifestEntry:
    return ManifestEntry(
        path=entry.path, kind="out", mode=entry.mode, mtime=entry.mtime, target=why, size=entry.size
    )


def _read_whole(source: int, limit: int) -> bytes:
    data = bytearray()
    while len(data) < limit and (piece := os.read(source, limit - len(data))):
        data += piece
    return bytes(data)


def save_left_files(blobs: BlobStore, left: LeftFiles) -> None:
    """Store what a run left, under the run's id."""
    path = _left_path(blobs, left.run)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomic_file(path, left.encode())


def load_left_files(blobs: BlobStore, run: str) -> LeftFiles | None:
    """Return what a run left; None if that is not stored. Raises ValueError if it is damaged."""
    path = _left_path(blobs, run)
    return LeftFiles.decode(path.read_bytes()) if path.is_file() else None


def load_all_left_files(blobs: BlobStore) -> Iterator[tuple[Path, LeftFiles]]:
    """Yield what is stored of all runs, with the file of each."""
    for path in sorted((blobs.root / "left").glob("*")):
        yield path, LeftFiles.decode(path.read_bytes())


def _left_path(blobs: BlobStore, run: str) -> Path:
    return blobs.root / "left" / hash_snapshot_data(run.encode())
