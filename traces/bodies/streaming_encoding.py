"""Content encodings decoded and encoded while a body streams, piece by piece."""

import zlib
from collections.abc import Callable
from typing import Protocol

import brotli
import zstandard

from traces.model import Headers, find_header

DECODING_ERRORS = (zlib.error, brotli.error, zstandard.ZstdError)
"""Errors that `StreamDecoder.feed` raises for bytes that are not in the encoding."""


class StreamDecoder(Protocol):
    """Decodes one body; `finished` is True once the encoding has marked its end."""

    finished: bool

    def feed(self, data: bytes) -> bytes: ...


class StreamEncoder(Protocol):
    """Encodes one body; the output of `feed` can be decoded at once up to its end."""

    def feed(self, data: bytes) -> bytes: ...
    def finish(self) -> bytes: ...


def parse_content_encodings(headers: Headers) -> tuple[str, ...]:
    """Return the content encodings in the order they were applied, without `identity`."""
    header = find_header(headers, "content-encoding")
    if header is None:
        return ()
    names = (name.strip().lower() for name in header.split(","))
    return tuple(name for name in names if name not in ("", "identity"))


def make_stream_decoder(applied: tuple[str, ...]) -> StreamDecoder | None:
    """Return a decoder for these encodings; None if one of them is unknown."""
    if not applied or any(name not in _DECODE for name in applied):
        return None
    if len(applied) == 1:
        return _DECODE[applied[0]]()
    return _DecoderChain([_DECODE[name]() for name in reversed(applied)])


def make_stream_encoder(applied: tuple[str, ...]) -> StreamEncoder:
    """Return an encoder that applies these encodings in order; raise KeyError for an unknown
    one."""
    return _EncoderChain([_ENCODE[name]() for name in applied])


def decode_complete_content(headers: Headers, body: bytes) -> bytes | None:
    """Return the body decoded; None if an encoding is unknown, or the body invalid or truncated."""
    if not (applied := parse_content_encodings(headers)):
        return body
    if (decoder := make_stream_decoder(applied)) is None:
        return None
    try:
        data = decoder.feed(body)
    except DECODING_ERRORS:
        return None
    return data if decoder.finished else None


class _DecoderChain:
    def __init__(self, steps: list[StreamDecoder]) -> None:
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


class _MemberDecoder:
    """gzip and zstd: a sequence of members (frames)."""

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


class _DeflateDecoder:
    """RFC 9110 means zlib's format, but some servers send the raw stream."""

    def __init__(self) -> None:
        self._stream, self._head = zlib.decompressobj(), b""
        self.finished = False

    def feed(self, data: bytes) -> bytes:
        try:
            decoded = self._stream.decompress(data)
        except zlib.error:
            if len(self._head) >= 2:
                raise
            self._stream = zlib.decompressobj(wbits=-15)
            decoded = self._stream.decompress(self._head + data)
        self._head = (self._head + data)[:2]
        if self._stream.unused_data:
            raise zlib.error("data after the end")
        self.finished = self._stream.eof
        return decoded


class _BrotliDecoder:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self.finished = False

    def feed(self, data: bytes) -> bytes:
        decoded = bytes(self._stream.process(data))
        self.finished = bool(self._stream.is_finished())
        return decoded


class _EncoderChain:
    def __init__(self, steps: list[StreamEncoder]) -> None:
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


class _ZlibEncoder:
    def __init__(self, wbits: int) -> None:
        self._stream = zlib.compressobj(6, zlib.DEFLATED, wbits)

    def feed(self, data: bytes) -> bytes:
        return self._stream.compress(data) + self._stream.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._stream.flush()


class _BrotliEncoder:
    def __init__(self) -> None:
        self._stream = brotli.Compressor(quality=4)

    def feed(self, data: bytes) -> bytes:
        return bytes(self._stream.process(data) + self._stream.flush())

    def finish(self) -> bytes:
        return bytes(self._stream.finish())


class _ZstdEncoder:
    def __init__(self) -> None:
        self._stream = zstandard.ZstdCompressor().compressobj()

    def feed(self, data: bytes) -> bytes:
        return self._stream.compress(data) + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def finish(self) -> bytes:
        return self._stream.flush()


_DECODE: dict[str, Callable[[], StreamDecoder]] = {
    "gzip": lambda: _MemberDecoder(lambda: zlib.decompressobj(wbits=31)),
    "x-gzip": lambda: _MemberDecoder(lambda: zlib.decompressobj(wbits=31)),
    "deflate": _DeflateDecoder,
    "br": _BrotliDecoder,
    "zstd": lambda: _MemberDecoder(lambda: zstandard.ZstdDecompressor().decompressobj()),
}
_ENCODE: dict[str, Callable[[], StreamEncoder]] = {
    "gzip": lambda: _ZlibEncoder(31),
    "x-gzip": lambda: _ZlibEncoder(31),
    "deflate": lambda: _ZlibEncoder(15),
    "br": _BrotliEncoder,
    "zstd": _ZstdEncoder,
}
