"""Read files that may be gzipped, whatever their name, with bounds on their size."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

MAX_WHOLE_FILE = 64 << 20
"""Maximum decompressed bytes of a file that is read at once. Parsing takes about four times the
size, so this limits an import to 300 MB of memory.
"""
SHAPE_ERRORS = (TypeError, AttributeError, LookupError, OverflowError)
"""The errors of reading a value whose shape is not that of the format."""
_GZIP = b"\x1f\x8b"
_HEAD = 65536


def read_unpacked_file(path: Path, limit: int = MAX_WHOLE_FILE) -> bytes:
    """Read and decompress a file; ValueError if it is too large or its gzip is invalid."""
    with path.open("rb") as file:
        is_gzip = file.read(2) == _GZIP
        file.seek(0)
        if not is_gzip:
            data = file.read(limit + 1)
        else:
            try:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    data = unpacked.read(limit + 1)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(f"its gzip cannot be unpacked: {error}") from None
    if len(data) > limit:
        verb = "unpacks to" if is_gzip else "has"
        raise ValueError(f"it {verb} more than {limit >> 20} MB, which is too much to read at once")
    return data


def decode_file_name(path: Path) -> str:
    """Return the name of a file as text; bytes that are not UTF-8 are replaced."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def read_file_head(path: Path) -> bytes:
    """Return the first 64 KB of a file, decompressed; empty if its gzip is invalid."""
    with path.open("rb") as file:
        is_gzip = file.read(2) == _GZIP
        file.seek(0)
        if not is_gzip:
            return file.read(_HEAD)
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                return unpacked.read(_HEAD)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            return b""


@contextmanager
def open_unpacked_file(path: Path) -> Iterator[BufferedIOBase]:
    """Open a file as a decompressed stream; ValueError if its gzip is invalid."""
    with path.open("rb") as file:
        is_gzip = file.read(2) == _GZIP
        file.seek(0)
        if not is_gzip:
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"its gzip cannot be unpacked: {error}") from None
