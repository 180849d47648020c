"""Read files that may be packed or in UTF-16, whatever their name, with bounds on their size."""

import bz2
import codecs
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Buffer, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

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
_HEAD = 65536
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PACKING_ERRORS = (EOFError, OSError, zlib.error, lzma.LZMAError)


class _Unpacker(Protocol):
    """What is unpacked of a file."""

    def read1(self, size: int, /) -> bytes: ...


def _open_zstd(file: BinaryIO) -> _Unpacker:
    import zstandard

    return cast(
        "_Unpacker", zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    )


_PACKINGS: tuple[tuple[bytes, str, Callable[[BinaryIO], _Unpacker]], ...] = (
    (b"\x1f\x8b", "gzip", lambda file: gzip.GzipFile(fileobj=file)),
    (b"BZh", "bzip2", lambda file: bz2.BZ2File(file)),
    (b"\xfd7zXZ\x00", "xz", lambda file: lzma.LZMAFile(file)),  # noqa: SIM115
    (b"\x28\xb5\x2f\xfd", "zstd", _open_zstd),
)
"""How files are packed: the bytes that they begin with, the name, and what opens them."""


def read_unpacked_file(path: Path, limit: int = MAX_WHOLE_FILE) -> bytes:
    """Read and decompress a file; ValueError if it is too large or its gzip is invalid."""
    with open_unpacked_file(path) as file:
        data = file.read(limit + 1)
        verb = "unpacks to" if isinstance(file.raw, _BoundedInflation) else "has"
    if len(data) > limit:
        raise ValueError(f"it {verb} more than {limit >> 20} MB, which is too much to read at once")
    return data


class _BoundedInflation(io.RawIOBase):
    """The bytes of a packed file; ValueError once they are out of proportion to it."""

    def __init__(self, packed: _Unpacker, name: str, size: int) -> None:
        self._packed, self._name, self._done = packed, name, 0
        self._limit = max(FREE_INFLATION, MAX_RATIO * size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        try:
            data = self._packed.read1(len(memoryview(buffer)))
        except _PACKING_ERRORS as error:
            raise ValueError(f"its {self._name} cannot be unpacked: {error}") from None
        self._done += len(data)
        if self._done > self._limit:
            raise ValueError(f"its {self._name} unpacks to more than {MAX_RATIO} times its size")
        memoryview(buffer)[: len(data)] = data
        return len(data)


class _Utf16Reader(io.RawIOBase):
    """A text in UTF-16 as UTF-8."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file, self._left = file, b""
        self._decoder = codecs.getincrementaldecoder("utf-16")()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        while not self._left and (data := self._file.read(_HEAD)):
            try:
                self._left = self._decoder.decode(data).encode()
            except UnicodeDecodeError as error:
                raise ValueError(f"its UTF-16 is invalid: {error}") from None
        view = memoryview(buffer)
        count = min(len(view), len(self._left))
        view[:count], self._left = self._left[:count], self._left[count:]
        return count


def decode_file_name(path: Path) -> str:
    """Return the name of a file as text; bytes that are not UTF-8 are replaced."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def read_file_head(path: Path) -> bytes:
    """Return the first 64 KB of a file, unpacked, without a BOM; less if it is damaged."""
    head = b""
    try:
        with open_unpacked_file(path) as file:
            while len(head) < _HEAD and (piece := file.read1(_HEAD - len(head))):
                head += piece
    except ValueError:
        pass  # the reader of its format raises it again
    return head.removeprefix(codecs.BOM_UTF8)


@contextmanager
def open_unpacked_file(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file as a stream, unpacked and in UTF-8; reads raise ValueError if it is damaged."""
    with path.open("rb") as file:
        unpacked = _unpack(file)
        if unpacked.peek(2)[:2] in _UTF16:
            unpacked = io.BufferedReader(_Utf16Reader(unpacked), _HEAD)
        yield unpacked


def _unpack(file: io.BufferedReader) -> io.BufferedReader:
    head = file.peek(_HEAD)
    for magic, name, open_packed in _PACKINGS:
        if head.startswith(magic):
            size = os.fstat(file.fileno()).st_size
            return io.BufferedReader(_BoundedInflation(open_packed(file), name, size), _HEAD)
    return file
