"""Read files that may be gzipped, whatever their name, with bounds on their size."""

import gzip
import io
import os
import zlib
from collections.abc import Buffer, Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_WHOLE_FILE = 64 << 20
"""Maximum decompressed bytes of a file that is read at once. Parsing takes about four times the
size, so this limits an import to 300 MB of memory.
"""
MAX_RATIO = 200
"""Largest size of a decompressed file, as a multiple of its compressed size; JSON has 3 to 30."""
FREE_INFLATION = 16 << 20
"""Decompressed bytes up to which any ratio is accepted."""
SHAPE_ERRORS = (TypeError, AttributeError, LookupError, OverflowError)
"""The errors of reading a value whose shape is not that of the format."""
_GZIP = b"\x1f\x8b"
_HEAD = 65536


def read_unpacked_file(path: Path, limit: int = MAX_WHOLE_FILE) -> bytes:
    """Read and decompress a file; ValueError if it is too large or its gzip is invalid."""
    with open_unpacked_file(path) as file:
        data = file.read(limit + 1)
        verb = "unpacks to" if isinstance(file.raw, _BoundedInflation) else "has"
    if len(data) > limit:
        raise ValueError(f"it {verb} more than {limit >> 20} MB, which is too much to read at once")
    return data


class _BoundedInflation(io.RawIOBase):
    """The decompressed bytes of a gzip; ValueError once they are out of proportion to it."""

    def __init__(self, packed: gzip.GzipFile, size: int) -> None:
        self._packed, self._limit, self._done = packed, max(FREE_INFLATION, MAX_RATIO * size), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        try:
            data = self._packed.read1(len(memoryview(buffer)))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"its gzip cannot be unpacked: {error}") from None
        self._done += len(data)
        if self._done > self._limit:
            raise ValueError(f"its gzip unpacks to more than {MAX_RATIO} times its size")
        memoryview(buffer)[: len(data)] = data
        return len(data)


def decode_file_name(path: Path) -> str:
    """Return the name of a file as text; bytes that are not UTF-8 are replaced."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def read_file_head(path: Path) -> bytes:
    """Return the first 64 KB of a file, decompressed, without a BOM; empty if gzip is invalid."""
    return _read_packed_head(path).removeprefix(b"\xef\xbb\xbf")


def _read_packed_head(path: Path) -> bytes:
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
def open_unpacked_file(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file as a decompressed stream; reads raise ValueError if its gzip is invalid."""
    with path.open("rb") as file:
        is_gzip = file.read(2) == _GZIP
        file.seek(0)
        if not is_gzip:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            size = os.fstat(file.fileno()).st_size
            yield io.BufferedReader(_BoundedInflation(unpacked, size), _HEAD)
