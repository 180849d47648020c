"""Content encodings undone and done again while a body streams, piece by piece."""

import zlib
from collections.abc import Callable
from typing import Protocol

import brotli
import zstandard

from traces.model import Headers, header

BROKEN = (zlib.error, brotli.error, zstandard.ZstdError)
"""What `Decoding.feed` raises for bytes that are not in the encoding."""


class Decoding(Protocol):
    """One body being decoded; `finished` is True where the encoding itself said the end."""

    finished: bool

    def feed(self, data: bytes) -> bytes: ...


class Encoding(Protocol):
    """One body being encoded; what `feed` returns can be decoded up to here at once."""

    def feed(self, data: bytes) -> bytes: ...
    def finish(self) -> bytes: ...


def names(headers: Headers) -> tuple[str, ...]:
    """The content encodings in the order they were applied, without `identity`."""
    said = header(headers, "content-encoding")
    if said is None:
        return ()
    found = (name.strip().lower() for name in said.split(","))
    return tuple(name for name in found if name not in ("", "identity"))


def decoding(applied: tuple[str, ...]) -> Decoding | None:
    """What undoes these encodings; None where one of them is not known."""
    if not applied or any(name not in _DECODE for name in applied):
        return None
    if len(applied) == 1:
        return _DECODE[applied[0]]()
    return _Chain([_DECODE[name]() for name in reversed(applied)])


def encoding(applied: tuple[str, ...]) -> Encoding:
    """What does these encodings, in this order; KeyError for one that is not known."""
    return _Pipe([_ENCODE[name]() for name in applied])


class _Chain:
    def __init__(self, steps: list[Decoding]) -> None:
        self._steps = steps

    @property
    def finished(self) -> bool:
        return all(step.finished for step in self._steps)

    @finished.setter
    def finished(self, _: bool) -> None:
        raise AttributeError("finished")

    def feed(self, data: bytes) -> bytes:
        for step in self._steps:
            data = step.feed(data)
        return data


class _Members:
    """gzip and zstd: members (frames) that may follow one another."""

    def __init__(self, make: Callable[[], "zlib._Decompress | zstandard.ZstdDecompressionObj"]):
        self._make, self._member = make, make()
        self.finished = False

    def feed(self, data: bytes) -> bytes:
        out = []
        while data:
            if self._member.eof:
                self._member = self._make()
            out.append(self._member.decompress(data))
            data = self._member.unused_data
        self.finished = self._member.eof
        return b"".join(out)


class _Deflate:
    """RFC 9110 means zlib's format, but some servers send the raw stream."""

    def __init__(self) -> None:
        self._stream, self._head = zlib.decompressobj(), b""
        self.finished = False

    def feed(self, data: bytes) -> bytes:
        try:
            said = self._stream.decompress(data)
        except zlib.error:
            if len(self._head) >= 2:
                raise
            self._stream = zlib.decompressobj(wbits=-15)
            said = self._stream.decompress(self._head + data)
        self._head = (self._head + data)[:2]
        self.finished = self._stream.eof
        return said


class _Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self.finished = False

    def feed(self, data: bytes) -> bytes:
        said = bytes(self._stream.process(data))
        self.finished = bool(self._stream.is_finished())
        return said


class _Pipe:
    def __init__(self, steps: list[Encoding]) -> None:
        self._steps = steps

    def feed(self, data: bytes) -> bytes:
        for step in self._steps:
            data = step.feed(data)
        return data

    def finish(self) -> bytes:
        data = b""
        for step in self._steps:
            data = (step.feed(data) if data else b"") + step.finish()
        return data


class _Zlib:
    def __init__(self, wbits: int) -> None:
        self._stream = zlib.compressobj(6, zlib.DEFLATED, wbits)

    def feed(self, data: bytes) -> bytes:
        return self._stream.compress(data) + self._stream.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._stream.flush()


class _ToBrotli:
    def __init__(self) -> None:
        self._stream = brotli.Compressor(quality=4)

    def feed(self, data: bytes) -> bytes:
        return bytes(self._stream.process(data) + self._stream.flush())

    def finish(self) -> bytes:
        return bytes(self._stream.finish())


class _ToZstd:
    def __init__(self) -> None:
        self._stream = zstandard.ZstdCompressor().compressobj()

    def feed(self, data: bytes) -> bytes:
        return self._stream.compress(data) + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def finish(self) -> bytes:
        return self._stream.flush()


_DECODE: dict[str, Callable[[], Decoding]] = {
    "gzip": lambda: _Members(lambda: zlib.decompressobj(wbits=31)),
    "x-gzip": lambda: _Members(lambda: zlib.decompressobj(wbits=31)),
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": lambda: _Members(lambda: zstandard.ZstdDecompressor().decompressobj()),
}
_ENCODE: dict[str, Callable[[], Encoding]] = {
    "gzip": lambda: _Zlib(31),
    "x-gzip": lambda: _Zlib(31),
    "deflate": lambda: _Zlib(15),
    "br": _ToBrotli,
    "zstd": _ToZstd,
}
