"""Write a pack: parts from files and from memory, in the order of their names."""

import os
import zlib
from collections.abc import Iterator, Mapping
from copy import replace
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from stumble.packs.pack_manifest import (
    MANIFEST_NAME,
    PackManifest,
    PackPart,
    encode_comment,
)
from stumble.packs.zip_layout import (
    ArchiveMember,
    check_member_name,
    encode_directory,
    encode_local_header,
    measure_archive,
)

PIECE_BYTES = 1 << 20

type PartSource = Path | bytes
"""A file with the bytes of a part, or these bytes."""


class _MeasuredPart(Struct, frozen=True):
    part: PackPart
    crc: int


def write_pack(
    path: Path, manifest: PackManifest, sources: Mapping[str, PartSource]
) -> PackManifest:
    """Write a new pack, whose parts are the sources by name; return its manifest.

    `manifest.parts` is ignored. The file appears when it is whole. Raises ValueError if the pack
    would be too large, or a file changes meanwhile.
    """
    measured = [_measure_part(name, sources[name]) for name in sorted(sources)]
    manifest = replace(manifest, parts=tuple(each.part for each in measured))
    first = manifest.encode()
    members = (
        ArchiveMember(name=MANIFEST_NAME, size=len(first), crc=zlib.crc32(first)),
        *(
            ArchiveMember(name=each.part.name, size=each.part.bytes, crc=each.crc)
            for each in measured
        ),
    )
    comment = encode_comment(manifest.root_hash)
    measure_archive(members, comment)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")  # as readable as any new file
    try:
        with aside.open("xb") as file:
            for member in members:
                file.write(encode_local_header(member))
                source = first if member.name == MANIFEST_NAME else sources[member.name]
                crc = 0
                for piece in _read_pieces(source):
                    crc = zlib.crc32(piece, crc)
                    file.write(piece)
                if crc != member.crc:
                    raise ValueError(f"{member.name} changed while it was packed")
            file.write(encode_directory(members, comment))
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return manifest


def _measure_part(name: str, source: PartSource) -> _MeasuredPart:
    digest, crc, size = sha256(), 0, 0
    for piece in _read_pieces(source):
        digest.update(piece)
        crc = zlib.crc32(piece, crc)
        size += len(piece)
    part = PackPart(name=check_member_name(name), bytes=size, sha256=digest.hexdigest())
    return _MeasuredPart(part, crc)


def _read_pieces(source: PartSource) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
