"""Content encodings of HTTP bodies, undone for reading only; tapes keep what was on the wire."""

import zlib

import brotli
import zstandard

from traces.model import Headers, header


def plain(headers: Headers, body: bytes) -> bytes | None:
    """The body without its content encoding; None where it cannot be undone.

    A body cut in the middle gives what could be inflated, so that a partial answer can still
    be read. Encodings are undone last first (RFC 9110, 8.4).
    """
    said = header(headers, "content-encoding")
    return body if said is None else _LATEST(said, body)


def legible(headers: Headers, body: bytes) -> bytes:
    """The same, to be compared: the very bytes where their encoding cannot be undone."""
    said = plain(headers, body)
    return body if said is None else said


class _Latest:
    """What the last body says, for all those who ask what one request says."""

    def __init__(self) -> None:
        self._kept: tuple[str, bytes, bytes | None] = ("", b"", b"")

    def __call__(self, said: str, body: bytes) -> bytes | None:
        kept = self._kept
        if kept[1] is not body or kept[0] != said:
            self._kept = kept = said, body, _undone(said, body)
        return kept[2]


_LATEST = _Latest()


def _undone(said: str, body: bytes) -> bytes | None:
    names = [name.strip().lower() for name in said.split(",")]
    for name in reversed([name for name in names if name not in ("", "identity")]):
        if name not in _DECODERS:
            return None
        try:
            body = _DECODERS[name](body)
        except (zlib.error, brotli.error, zstandard.ZstdError):
            return None
    return body


def _gzip(body: bytes) -> bytes:
    out = []
    while body:
        inflater = zlib.decompressobj(wbits=31)
        out.append(inflater.decompress(body))
        body = inflater.unused_data
    return b"".join(out)


def _deflate(body: bytes) -> bytes:
    # RFC 9110 means zlib's format, but some servers send the raw stream.
    try:
        return zlib.decompressobj().decompress(body)
    except zlib.error:
        return zlib.decompressobj(wbits=-15).decompress(body)


def _brotli(body: bytes) -> bytes:
    return bytes(brotli.Decompressor().process(body))


def _zstd(body: bytes) -> bytes:
    # Streamed frames carry no content size, which the one-shot decoder insists on.
    return zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(body)


_DECODERS = {"gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _brotli, "zstd": _zstd}
