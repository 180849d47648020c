"""Snapshots in packs: as parts when one is written, and into a store when one is used.

Every content is checked against its name and its length before it gets into a store, so that a
pack can neither replace a content nor fill the disk.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import zstandard

from scenarios.workspace.blobs import NAME_LENGTH, BlobStore, write_atomic_file
from scenarios.workspace.manifest import SnapshotManifest, hash_snapshot_data

MANIFESTS, BLOBS = "snapshots/manifests/", "snapshots/blobs/"
MAX_WORKSPACE_BYTES = 1 << 34
"""Most bytes of a folder that is unpacked."""
_PIECE = 1 << 20


def list_snapshot_files(blobs: BlobStore, name: str) -> Iterator[tuple[str, Path]]:
    """Yield the parts of a snapshot with their files. Raises ValueError if one is missing."""
    manifest = blobs.load_manifest(name)
    if manifest is None:
        raise ValueError(f"its snapshot is not in {blobs.root}")
    yield MANIFESTS + name, blobs.root / "manifests" / name
    for entry in manifest.entries:
        if entry.kind == "file":
            path = blobs.root / "blobs" / entry.target[:2] / entry.target[2:]
            if not path.is_file():
                raise ValueError(f"its snapshot in {blobs.root} lacks the content of {entry.path}")
            yield f"{BLOBS}{entry.target[:2]}/{entry.target[2:]}", path


def read_workspace_files(blobs: BlobStore, name: str, limit: int) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file of a snapshot, of a content at most `limit` bytes."""
    manifest = blobs.load_manifest(name)
    for entry in manifest.entries if manifest else ():
        if entry.kind == "file":
            path = blobs.root / "blobs" / entry.target[:2] / entry.target[2:]
            with path.open("rb") as packed:
                reader = zstandard.ZstdDecompressor().stream_reader(packed)
                yield entry.path, reader.read(limit)


def import_snapshot(name: str, origin: BlobStore, target: BlobStore) -> bool:
    """Copy a snapshot from one store to another, and mark it as packed; False if it is not there.

    Raises ValueError if a content is not the one that its name and the manifest promise.
    """
    manifest = origin.load_manifest(name)
    if manifest is None:
        return False
    files = [entry for entry in manifest.entries if entry.kind == "file"]
    if sum(entry.size for entry in files) > MAX_WORKSPACE_BYTES:
        raise ValueError(f"its workspace is over {MAX_WORKSPACE_BYTES >> 30} GB")
    for entry in files:
        _check_content_name(entry.target)
        if not target.has_blob(entry.target):
            data = origin.root / "blobs" / entry.target[:2] / entry.target[2:]
            _copy_content(data, target, entry.target, entry.size, entry.path)
    mark_packed_snapshot(target, name)
    write_atomic_file(target.root / "manifests" / name, manifest.encode())
    return True


def check_snapshot_data(name: str, data: bytes) -> SnapshotManifest:
    """Decode a snapshot's manifest; ValueError if it is another one than its name promises."""
    _check_content_name(name)
    if hash_snapshot_data(data) != name:
        raise ValueError(f"{MANIFESTS}{name} is another snapshot than its name promises")
    return SnapshotManifest.decode(data)


def _check_content_name(name: str) -> None:
    if len(name) != NAME_LENGTH or not set(name) <= set("0123456789abcdef"):
        raise ValueError(f"{name[:80]!r} is no name of a content")


def _copy_content(path: Path, target: BlobStore, name: str, size: int, shown: str) -> None:
    try:
        with path.open("rb") as packed:
            if _hash_content(packed, size) != name:
                raise ValueError(f"{shown}: its content {name} is damaged, or of another length")
    except FileNotFoundError:
        raise ValueError(f"{shown}: its content {name} is missing") from None
    except zstandard.ZstdError as error:
        raise ValueError(f"{shown}: its content {name} is damaged: {error}") from None
    copy = target.root / "blobs" / name[:2] / name[2:]
    copy.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomic_file(copy, path.read_bytes())


def _hash_content(packed: BinaryIO, size: int) -> str | None:
    """Hash an unpacked content of this length; None, without unpacking more, of another one."""
    digest, left = blake2b(digest_size=20), size
    reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    while piece := reader.read(min(_PIECE, left + 1)):
        left -= len(piece)
        if left < 0:
            return None
        digest.update(piece)
    return None if left else digest.hexdigest()


def mark_packed_snapshot(blobs: BlobStore, name: str) -> None:
    """Mark a snapshot as one that came in a pack: the folder at its path is another one."""
    marks = blobs.root / "packed"
    marks.mkdir(mode=0o700, exist_ok=True)
    (marks / name).touch(mode=0o600)


def is_packed_snapshot(blobs: BlobStore, name: str) -> bool:
    """Whether a snapshot came in a pack."""
    return (blobs.root / "packed" / name).exists()
