"""Read the members of a zip file, also compressed with zstd, with bounds on what they unpack to."""

import struct
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import zstandard

from traces.importers.shared.file_reader import FREE_INFLATION, MAX_RATIO, MAX_WHOLE_FILE

ZSTD = 93
"""The compression type of zstd (APPNOTE.TXT 6.3.8), which `zipfile` lacks before Python 3.14."""
MAX_UNPACKED_ZIP = 8 << 30
FREE_UNPACKED_ZIP = 256 << 20
"""Decompressed bytes of all members up to which any ratio is accepted."""
_LOCAL_HEADER = struct.Struct("<26xHH")


def check_zip_size(packed: zipfile.ZipFile, path: Path) -> None:
    """Raise ValueError if the members are declared to unpack to too much."""
    total, size = sum(each.file_size for each in packed.infolist()), path.stat().st_size
    if total > MAX_UNPACKED_ZIP:
        raise ValueError(f"it unpacks to more than {MAX_UNPACKED_ZIP >> 30} GB")
    if total > max(FREE_UNPACKED_ZIP, MAX_RATIO * size):
        raise ValueError(
            f"it unpacks to {total >> 20:,} MB, more than {MAX_RATIO} times its {size:,} bytes"
        )


def read_zip_member(packed: zipfile.ZipFile, name: str, limit: int = MAX_WHOLE_FILE) -> bytes:
    """Return a member, decompressed; ValueError if it is damaged, or too large.

    The sizes that a zip declares may be wrong, so the bytes themselves are counted.
    """
    member = packed.getinfo(name)
    bound = min(limit, max(FREE_INFLATION, MAX_RATIO * member.compress_size))
    try:
        if member.compress_type == ZSTD:
            data = _read_zstd_member(packed, member, bound + 1)
        else:
            with packed.open(member) as file:
                data = file.read(bound + 1)
    except (zipfile.BadZipFile, zstandard.ZstdError, NotImplementedError, EOFError) as error:
        raise ValueError(f"{name} cannot be unpacked: {error}") from None
    if len(data) > bound:
        if bound == limit:
            raise ValueError(f"{name} unpacks to more than {limit >> 20} MB")
        raise ValueError(f"{name} unpacks to more than {MAX_RATIO} times its size")
    return data


def _read_zstd_member(packed: zipfile.ZipFile, member: zipfile.ZipInfo, size: int) -> bytes:
    file = packed.fp
    if file is None:
        raise ValueError("the zip is closed")
    file.seek(member.header_offset)
    name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    file.seek(name_length + extra_length, 1)
    compressed = file.read(min(member.compress_size, MAX_WHOLE_FILE))
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with decompressor.stream_reader(BytesIO(compressed), read_across_frames=True) as stream:
        data = stream.read(size)
    if len(data) < size and zlib.crc32(data) != member.CRC:
        raise ValueError(f"{member.filename} cannot be unpacked: its checksum is wrong")
    return data
