"""Reading files that may be gzipped, whatever they are called."""

import gzip
import zlib
from pathlib import Path

_GZIP = b"\x1f\x8b"
_HEAD = 65536


def content(path: Path) -> bytes:
    """All bytes of a file, unpacked."""
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(_GZIP) else data


def head(path: Path) -> bytes:
    """The first 64 KB of a file, unpacked; nothing if it cannot be unpacked."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if not packed:
            return file.read(_HEAD)
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                return unpacked.read(_HEAD)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return b""
