"""Reading files that may be gzipped, whatever they are called, and never more than fits."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

WHOLE = 64 << 20
"""Bytes of a file, unpacked, up to which it is read as a whole. What is parsed takes some four
times its size, so this is what keeps an import under 300 MB."""
MISSHAPEN = (TypeError, AttributeError, LookupError, OverflowError)
"""What it raises to read a value that is not of the shape which a format says."""
_GZIP = b"\x1f\x8b"
_HEAD = 65536


def content(path: Path, limit: int = WHOLE) -> bytes:
    """All bytes of a file, unpacked; ValueError where they are too many or cannot be unpacked."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if not packed:
            data = file.read(limit + 1)
        else:
            try:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    data = unpacked.read(limit + 1)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(f"its gzip cannot be unpacked: {error}") from None
    if len(data) > limit:
        how = "unpacks to" if packed else "has"
        raise ValueError(f"it {how} more than {limit >> 20} MB, which is too much to read at once")
    return data


def named(path: Path) -> str:
    """The name of a file as text: what of it is no UTF-8 is replaced."""
    return os.fsencode(path.name).decode("utf-8", "replace")


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


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """A file to be read piece by piece, unpacked; ValueError where it cannot be unpacked."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if not packed:
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"its gzip cannot be unpacked: {error}") from None
