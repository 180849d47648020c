"""The bytes of a pack: a zip archive of which only one form is valid for given members.

Members are stored uncompressed, in order, all with the same date and mode; there are no extra
fields, no member is encrypted, a folder or a link. So the bytes follow from names and contents, and
a reader can compare each header with the one that it would have written. Sizes are those of the
format without zip64. Layout: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from msgspec import Struct

_LOCAL = struct.Struct("<IHHHHHIIIHH")
_CENTRAL = struct.Struct("<IHHHHHHIIIHHHHHII")
_END = struct.Struct("<IHHHHIIH")
_LOCAL_SIGNATURE, _CENTRAL_SIGNATURE, _END_SIGNATURE = 0x04034B50, 0x02014B50, 0x06054B50
_VERSION, _UNIX = 20, 3 << 8
_DATE = 1 << 5 | 1
"""1980-01-01, the first date of the format."""
_MODE = 0o100644 << 16
MAX_MEMBERS = 65_534
MAX_ARCHIVE_BYTES = (1 << 32) - 2
MAX_NAME_BYTES = 255
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._+=@-]*(/[A-Za-z0-9_-][A-Za-z0-9._+=@-]*)*")


class ArchiveMember(Struct, frozen=True, kw_only=True):
    """One file of an archive: its name, and the length and CRC-32 of its bytes."""

    name: str
    size: int
    crc: int


def is_member_name(name: str) -> bool:
    """Whether a name is a relative path of plain names, none of them hidden or `..`."""
    return len(name) <= MAX_NAME_BYTES and _NAME.fullmatch(name) is not None


def check_member_name(name: str) -> str:
    """Return the name; ValueError if it is no relative path of plain names."""
    if not is_member_name(name):
        raise ValueError(f"{name[:80]!r} is no valid name of a part")
    return name


def encode_local_header(member: ArchiveMember) -> bytes:
    """Return the bytes before the data of a member."""
    name = member.name.encode()
    fields = (_VERSION, 0, 0, 0, _DATE, member.crc, member.size, member.size, len(name), 0)
    return _LOCAL.pack(_LOCAL_SIGNATURE, *fields) + name


def encode_directory(members: Sequence[ArchiveMember], comment: bytes) -> bytes:
    """Return the bytes after the last member: the central directory and its end."""
    at, entries = 0, list[bytes]()
    for member in members:
        name = member.name.encode()
        sizes = (member.crc, member.size, member.size, len(name), 0, 0, 0, 0, _MODE, at)
        versions = (_CENTRAL_SIGNATURE, _UNIX | _VERSION, _VERSION, 0, 0, 0, _DATE)
        entries.append(_CENTRAL.pack(*versions, *sizes) + name)
        at += len(encode_local_header(member)) + member.size
    size, count = sum(map(len, entries)), len(members)
    end = _END.pack(_END_SIGNATURE, 0, 0, count, count, size, at, len(comment))
    return b"".join((*entries, end, comment))


def measure_archive(members: Sequence[ArchiveMember], comment: bytes) -> int:
    """Return the length of the archive in bytes; ValueError if the format cannot hold it."""
    size = sum(len(encode_local_header(each)) + each.size for each in members)
    if len(members) > MAX_MEMBERS:
        raise ValueError(f"{len(members)} parts, and a pack holds {MAX_MEMBERS}")
    if size > MAX_ARCHIVE_BYTES:
        raise ValueError(f"{size >> 20} MB, and a pack holds {MAX_ARCHIVE_BYTES >> 20}")
    size += len(encode_directory(members, comment))
    if size > MAX_ARCHIVE_BYTES:
        raise ValueError(f"{size >> 20} MB, and a pack holds {MAX_ARCHIVE_BYTES >> 20}")
    return size


def read_comment(file: BinaryIO, length: int) -> bytes:
    """Return the last `length` bytes of a file; ValueError if it is shorter."""
    size = file.seek(0, 2)
    if size < length + _END.size:
        raise ValueError("it is cut off")
    file.seek(size - length)
    return file.read(length)


def read_directory(file: BinaryIO, comment: bytes) -> tuple[ArchiveMember, ...]:
    """Return the members of an archive with this comment, in their order.

    Raises ValueError, naming the part, unless every byte outside of the members' data is as this
    module writes it.
    """
    size = file.seek(0, 2)
    if size > MAX_ARCHIVE_BYTES:
        raise ValueError(f"it has {size >> 20} MB, and a pack at most {MAX_ARCHIVE_BYTES >> 20}")
    end_at = size - len(comment) - _END.size
    file.seek(end_at)
    signature, _, _, count, _, length, at, _ = _END.unpack(file.read(_END.size))
    if signature != _END_SIGNATURE or at + length != end_at:
        raise ValueError("its directory is damaged, or it is cut off")
    file.seek(at)
    data = file.read(size - at)
    members = tuple(_parse_entries(data[:length], count))
    if encode_directory(members, comment) != data:
        raise ValueError(f"its directory is damaged, or another program wrote it{_REPACK}")
    _check_local_headers(file, members)
    return members


_REPACK = " (stumble reads packs as `stumble pack` writes them)"


def _parse_entries(data: bytes, count: int) -> Iterator[ArchiveMember]:
    at, seen = 0, set[str]()
    for _ in range(count):
        if at + _CENTRAL.size > len(data):
            raise ValueError("its directory is cut off")
        fields = _CENTRAL.unpack_from(data, at)
        method, crc, packed, size, name_length = fields[4], *fields[7:11]
        extra, comment, mode = fields[11], fields[12], fields[15]
        start = at + _CENTRAL.size
        raw = data[start : start + name_length]
        name = check_member_name(raw.decode("ascii", "replace"))
        if fields[0] != _CENTRAL_SIGNATURE:
            raise ValueError("its directory is damaged")
        if name in seen:
            raise ValueError(f"{name} is in it twice")
        if method or packed != size:
            raise ValueError(f"{name} is compressed{_REPACK}")
        if mode != _MODE:
            raise ValueError(f"{name} is a link, or no plain file")
        seen.add(name)
        yield ArchiveMember(name=name, size=size, crc=crc)
        at = start + name_length + extra + comment


def _check_local_headers(file: BinaryIO, members: Sequence[ArchiveMember]) -> None:
    at = 0
    for member in members:
        expected = encode_local_header(member)
        file.seek(at)
        if file.read(len(expected)) != expected:
            raise ValueError(f"{member.name}: its header is damaged")
        at += len(expected) + member.size


def locate_members(members: Sequence[ArchiveMember]) -> dict[str, tuple[int, int]]:
    """Return offset and length of the data of each member, by name."""
    at, places = 0, dict[str, tuple[int, int]]()
    for member in members:
        at += len(encode_local_header(member))
        places[member.name] = at, member.size
        at += member.size
    return places
