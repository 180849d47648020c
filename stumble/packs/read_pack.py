"""Read a pack: every byte of it is checked before any of it is used."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from stumble.packs.pack_manifest import (
    COMMENT_BYTES,
    COMMENT_PREFIX,
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    PackManifest,
    encode_comment,
)
from stumble.packs.write_pack import PIECE_BYTES
from stumble.packs.zip_layout import locate_members, read_comment, read_directory

_ZIP = b"PK\x03\x04"
_NAME_AT = 30
"""Byte at which the name of a ZIP's first member begins."""


class PackReader:
    """An open pack whose bytes have been checked."""

    def __init__(
        self, file: BinaryIO, manifest: PackManifest, places: dict[str, tuple[int, int]]
    ) -> None:
        self._file, self.manifest, self._places = file, manifest, places

    def read_pieces(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a part."""
        at, left = self._places[name]
        while left:
            self._file.seek(at)
            piece = self._file.read(min(left, PIECE_BYTES))
            if not piece:
                raise ValueError(f"{name} is cut off")
            at, left = at + len(piece), left - len(piece)
            yield piece

    def read_part(self, name: str) -> bytes:
        """Return the bytes of a part."""
        return b"".join(self.read_pieces(name))


def is_pack(path: Path) -> bool:
    """Whether a file begins as a pack does; False for one that cannot be read."""
    try:
        with path.open("rb") as file:
            head, name = file.read(_NAME_AT), file.read(len(MANIFEST_NAME))
            return head.startswith(_ZIP) and name == MANIFEST_NAME.encode()
    except OSError:
        return False


@contextmanager
def open_pack(path: Path) -> Iterator[PackReader]:
    """Open a pack for the block. Raises ValueError, naming the part, unless all of it is sound."""
    with path.open("rb") as file:
        try:
            reader = _check_pack(file)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        yield reader


def _check_pack(file: BinaryIO) -> PackReader:
    comment = read_comment(file, COMMENT_BYTES)
    if not comment.startswith(COMMENT_PREFIX):
        raise ValueError("it is no pack of stumble, or its end is damaged")
    members = read_directory(file, comment)
    places = locate_members(members)
    if not members or members[0].name != MANIFEST_NAME:
        raise ValueError(f"its first part is not {MANIFEST_NAME}")
    if members[0].size > MAX_MANIFEST_BYTES:
        raise ValueError(f"{MANIFEST_NAME} is too large")
    at, size = places[MANIFEST_NAME]
    file.seek(at)
    first = file.read(size)
    if encode_comment(sha256(first).hexdigest()) != comment:
        raise ValueError(f"{MANIFEST_NAME} is damaged: it does not have the pack's root hash")
    manifest = PackManifest.decode(first)
    reader = PackReader(file, manifest, places)
    if [each.name for each in manifest.parts] != [each.name for each in members[1:]]:
        raise ValueError(f"{MANIFEST_NAME} names other parts than there are")
    for part in manifest.parts:
        digest = sha256()
        for piece in reader.read_pieces(part.name):
            digest.update(piece)
        if digest.hexdigest() != part.sha256 or places[part.name][1] != part.bytes:
            raise ValueError(f"{part.name} is damaged")
    return reader
