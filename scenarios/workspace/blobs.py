"""Snapshot storage: each file content once, compressed and named by its hash.

manifests/<name>        the entries of a folder blobs/<na>/<me>         a file's content, zstd
redacted/<name>         marks a content whose secrets are placeholders
redactions              the secrets behind these placeholders, as hashes
seen/<folder>           content name of each file, so that unchanged files are not read again
left/<run>              what a run left in its folder: the entries that differ from its snapshot
ends/<folder>/<id>      the snapshots before and after a recording made in the folder
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import msgpack
import zstandard
from msgspec import Struct
from msgspec.structs import asdict, astuple

from scenarios.workspace.manifest import SnapshotManifest, hash_snapshot_data
from traces.redaction.fingerprints import RedactionRecord
from traces.tape.field_types import parse_struct

ZSTD_LEVEL = 1
PIECE_BYTES = 1 << 20
NAME_LENGTH = 40
"""Length of a content name: 20 bytes in hex."""


class RecordingSnapshots(Struct, frozen=True, kw_only=True):
    """A recording made in a folder: the names of the snapshots before and after it."""

    id: str
    at: int
    """Its end, in nanoseconds since the epoch."""
    before: str
    after: str


class BlobStore:
    """A folder of contents, readable by its owner only."""

    def __init__(self, root: Path) -> None:
        self.root, self._blobs = root, str(root / "blobs")
        for part in (root, root / "blobs", root / "manifests", root / "seen"):
            part.mkdir(mode=0o700, exist_ok=True, parents=True)

    def _blob_path(self, name: str) -> Path:
        return self.root / "blobs" / name[:2] / name[2:]

    def has_blob(self, name: str) -> bool:
        """Return whether this content is stored."""
        # A walk asks for each file: making a path would take longer than the look-up.
        return os.access(f"{self._blobs}/{name[:2]}/{name[2:]}", os.F_OK)

    def is_redacted(self, name: str) -> bool:
        """Return whether a content has placeholders in place of secrets of its file."""
        return (self.root / "redacted" / name).exists()

    def mark_redacted(self, name: str) -> None:
        """Note that a content has placeholders in place of secrets of its file."""
        folder = self.root / "redacted"
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / name).touch()

    def load_redactions(self) -> tuple[RedactionRecord, ...]:
        """Return the secrets behind placeholders in contents; none if the file is damaged."""
        try:
            rows = msgpack.unpackb((self.root / "redactions").read_bytes())
            return tuple(parse_struct(RedactionRecord, row) for row in rows)
        except (FileNotFoundError, ValueError, TypeError):
            return ()

    def save_redactions(self, records: Sequence[RedactionRecord]) -> None:
        """Store the secrets behind placeholders in contents, if there are any."""
        if records and tuple(records) != self.load_redactions():
            rows = msgpack.packb([asdict(record) for record in records])
            write_atomic_file(self.root / "redactions", rows)

    def put_blob(self, source: int) -> str:
        """Store the data of a file descriptor; return its name."""
        head = _read_piece(source)
        return (
            self.put_bytes(head) if len(head) < PIECE_BYTES else self._put_large_blob(source, head)
        )

    def put_bytes(self, data: bytes) -> str:
        """Store a content; return its name."""
        name = hash_snapshot_data(data)
        if not self.has_blob(name):
            self._write_compressed(name, zstandard.compress(data, ZSTD_LEVEL))
        return name

    def _put_large_blob(self, source: int, piece: bytes) -> str:
        digest, packer = blake2b(digest_size=20), zstandard.ZstdCompressor(ZSTD_LEVEL).compressobj()
        with tempfile.NamedTemporaryFile(dir=self.root, delete=False) as temporary:
            try:
                while piece:
                    digest.update(piece)
                    temporary.write(packer.compress(piece))
                    piece = _read_piece(source)
                temporary.write(packer.flush())
            except BaseException:
                Path(temporary.name).unlink()
                raise
        path = self._blob_path(digest.hexdigest())
        path.parent.mkdir(mode=0o700, exist_ok=True)
        Path(temporary.name).replace(path)
        return digest.hexdigest()

    def _write_compressed(self, name: str, data: bytes) -> None:
        path = self._blob_path(name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomic_file(path, data)

    def write_blob(self, name: str, target: Path) -> None:
        """Write a content to a new file. Raises ValueError if it is missing or damaged."""
        digest, unpacker = blake2b(digest_size=20), zstandard.ZstdDecompressor()
        try:
            with self._blob_path(name).open("rb") as packed, target.open("xb") as file:
                for piece in unpacker.read_to_iter(packed):
                    digest.update(piece)
                    file.write(piece)
        except FileNotFoundError:
            raise ValueError(f"{target.name}: its content {name} is gone from the store") from None
        except zstandard.ZstdError as error:
            raise ValueError(f"{target.name}: its content {name} is damaged: {error}") from None
        if digest.hexdigest() != name:
            raise ValueError(f"{target.name}: its content {name} is damaged")

    def read_blob(self, name: str, limit: int) -> bytes:
        """Return at most `limit` bytes of a content. Raises ValueError if missing or damaged."""
        try:
            with self._blob_path(name).open("rb") as packed:
                return zstandard.ZstdDecompressor().stream_reader(packed).read(limit)
        except (OSError, zstandard.ZstdError) as error:
            raise ValueError(f"the content {name} cannot be read: {error}") from None

    def save_manifest(self, manifest: SnapshotManifest) -> str:
        """Store a manifest; return the name of the snapshot."""
        data = manifest.encode()
        name = hash_snapshot_data(data)
        write_atomic_file(self.root / "manifests" / name, data)
        return name

    def load_manifest(self, name: str) -> SnapshotManifest | None:
        """Return the manifest of a snapshot; None if it is not stored here."""
        path = self.root / "manifests" / name
        if not path.is_file():
            return None
        data = path.read_bytes()
        if hash_snapshot_data(data) != name:
            raise ValueError(f"{path}: a damaged manifest")
        return SnapshotManifest.decode(data)

    def save_recording(self, folder: Path, recorded: RecordingSnapshots) -> None:
        """Store the snapshot names of a recording made in a folder."""
        directory = self.root / "ends" / hash_snapshot_data(os.fsencode(folder))
        directory.mkdir(mode=0o700, exist_ok=True, parents=True)
        write_atomic_file(
            directory / hash_snapshot_data(recorded.id.encode()), msgpack.packb(astuple(recorded))
        )

    def load_recordings(self, folder: Path) -> list[RecordingSnapshots]:
        """Return the recordings made in a folder, ordered by end."""
        directory = self.root / "ends" / hash_snapshot_data(os.fsencode(folder))
        return sorted(_read_recordings(directory), key=lambda each: each.at)

    def load_all_recordings(self) -> Iterator[RecordingSnapshots]:
        """Yield the recordings made in any folder."""
        for directory in (self.root / "ends").glob("*"):
            yield from _read_recordings(directory)


def _read_recordings(directory: Path) -> Iterator[RecordingSnapshots]:
    for path in directory.iterdir() if directory.is_dir() else ():
        if len(path.name) != NAME_LENGTH:
            continue  # being written
        id, at, before, after = msgpack.unpackb(path.read_bytes())
        yield RecordingSnapshots(id=id, at=at, before=before, after=after)


class HashOnlyStore(BlobStore):
    """Compute names and store nothing: for a folder that is compared and never restored."""

    def has_blob(self, name: str) -> bool:
        """Return True: a content with a known name need not be read again."""
        return True

    def mark_redacted(self, name: str) -> None:
        """Note nothing: no content is stored."""

    def put_blob(self, source: int) -> str:
        """Return the name of a file descriptor's data."""
        digest = blake2b(digest_size=20)
        while piece := _read_piece(source):
            digest.update(piece)
        return digest.hexdigest()


def write_atomic_file(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as temporary:
        temporary.write(data)
    Path(temporary.name).replace(path)


def _read_piece(source: int) -> bytes:
    """Read PIECE_BYTES, less only at the end of the file."""
    pieces, remaining = [], PIECE_BYTES
    while remaining and (piece := os.read(source, remaining)):
        pieces.append(piece)
        remaining -= len(piece)
    return b"".join(pieces)
