"""A manifest: what was in a folder at one moment, as a value with a name of its own.

A snapshot is a manifest and the blobs that it names; its name is the BLAKE2b digest of the
manifest, so two folders alike have one snapshot.
"""

from dataclasses import astuple, dataclass, fields
from hashlib import blake2b
from typing import Literal, Self

import msgpack
import zstandard

FORMAT = 1
ESCAPED = "surrogateescape"
"""How a name that is no text stands in a text, as in `os.fsdecode`."""
LARGEST = 1 << 30
"""Bytes of a manifest at most; one of 50,000 files has a few million."""

type Kind = Literal["folder", "file", "link", "out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One path of a folder; the order of the fields is the format."""

    path: str
    kind: Kind
    mode: int = 0
    mtime: int = 0
    """In nanoseconds since the epoch."""
    target: str = ""
    """Of a file the name of its blob, of a link where it points, of what is `out` why."""
    size: int = 0
    folder: bool = False
    """Whether what is `out` is a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A folder's entries, each folder before what is in it, and the folder itself as `.`."""

    entries: tuple[Entry, ...]

    @property
    def out(self) -> tuple[Entry, ...]:
        """What is not kept and shows through from its original place."""
        return tuple(entry for entry in self.entries if entry.kind == "out")

    def encode(self) -> bytes:
        """The manifest as bytes: the same for the same entries."""
        rows = [astuple(entry) for entry in self.entries]
        return zstandard.compress(msgpack.packb((FORMAT, rows), unicode_errors=ESCAPED), 3)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """What `encode` wrote; ValueError where it is damaged or of a newer format."""
        try:
            plain = zstandard.ZstdDecompressor().decompress(data, max_output_size=LARGEST)
            number, rows = msgpack.unpackb(plain, unicode_errors=ESCAPED)
        except (zstandard.ZstdError, ValueError, TypeError) as error:
            raise ValueError(f"a damaged manifest: {error}") from None
        if number > FORMAT:
            raise ValueError(f"manifest format {number}, this version reads up to {FORMAT}")
        names = [each.name for each in fields(Entry)]
        return cls(entries=tuple(Entry(**dict(zip(names, row, strict=True))) for row in rows))


def digest(data: bytes) -> str:
    """The name under which bytes are kept."""
    return blake2b(data, digest_size=20).hexdigest()
