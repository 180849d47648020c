"""Manifests: the entries of a folder at one moment, named by their digest.

A snapshot is a manifest and the blobs that it names; its name is the BLAKE2b digest of the
manifest, so two equal folders have one snapshot.
"""

from hashlib import blake2b
from typing import Literal, Self

import msgpack
import zstandard
from msgspec import Struct
from msgspec.structs import astuple

MANIFEST_FORMAT = 1
NAME_ESCAPES = "surrogateescape"
"""How a file name that is not UTF-8 is encoded as text, as in `os.fsdecode`."""
MAX_MANIFEST_BYTES = 1 << 30
"""Largest manifest in bytes; one of 50,000 files has a few million."""

type EntryKind = Literal["folder", "file", "link", "out"]


class ManifestEntry(Struct, frozen=True, kw_only=True):
    """One path of a folder; the order of the fields is the wire format."""

    path: str
    kind: EntryKind
    mode: int = 0
    mtime: int = 0
    """Nanoseconds since the epoch."""
    target: str = ""
    """The blob name of a file, the target of a link, the reason of kind `out`."""
    size: int = 0
    folder: bool = False
    """Whether an entry of kind `out` is a folder."""


class SnapshotManifest(Struct, frozen=True, kw_only=True):
    """A folder's entries, each folder before its contents; the folder itself is `.`."""

    entries: tuple[ManifestEntry, ...]

    @property
    def excluded(self) -> tuple[ManifestEntry, ...]:
        """The entries that are not stored and show through from their original place."""
        return tuple(entry for entry in self.entries if entry.kind == "out")

    def encode(self) -> bytes:
        """Encode deterministically: equal entries give equal bytes."""
        rows = [astuple(entry) for entry in self.entries]
        return zstandard.compress(
            msgpack.packb((MANIFEST_FORMAT, rows), unicode_errors=NAME_ESCAPES), 3
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decode the bytes of `encode`. Raises ValueError if they are damaged or of a newer
        format.
        """
        try:
            plain = zstandard.ZstdDecompressor().decompress(
                data, max_output_size=MAX_MANIFEST_BYTES
            )
            number, rows = msgpack.unpackb(plain, unicode_errors=NAME_ESCAPES)
        except (zstandard.ZstdError, ValueError, TypeError) as error:
            raise ValueError(f"a damaged manifest: {error}") from None
        if number > MANIFEST_FORMAT:
            raise ValueError(
                f"manifest format {number}, this version reads up to {MANIFEST_FORMAT}"
            )
        names = ManifestEntry.__struct_fields__
        return cls(
            entries=tuple(ManifestEntry(**dict(zip(names, row, strict=True))) for row in rows)
        )


def hash_snapshot_data(data: bytes) -> str:
    """Return the name under which bytes are stored."""
    return blake2b(data, digest_size=20).hexdigest()
