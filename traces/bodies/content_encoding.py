"""Decoding of HTTP content encodings, for reading only; tapes store the bytes on the wire."""

import zlib

import brotli
import zstandard

from traces.identity_cache import cache_by_identity
from traces.model import Headers, Request, find_header


def decode_content(headers: Headers, body: bytes) -> bytes | None:
    """Return the body without its content encoding; None if it cannot be decoded.

    A truncated body gives its decodable beginning, so that a partial response is still readable.
    Encodings are undone in reverse order (RFC 9110, 8.4).
    """
    encoding = find_header(headers, "content-encoding")
    return body if encoding is None else _DECODE_CACHE(encoding, body)


@cache_by_identity(4)  # a request as sent, as redacted, and as recorded
def read_content(request: Request) -> bytes:
    """Return the decoded body of a request; empty if it cannot be decoded."""
    return decode_content(request.headers, request.body) or b""


def decode_content_or_raw(headers: Headers, body: bytes) -> bytes:
    """Return the decoded body for a comparison, or the body itself if it cannot be decoded."""
    decoded = decode_content(headers, body)
    return body if decoded is None else decoded


class _DecodeCache:
    """Cache of the last decoded bodies: several callers decode each request and its answer."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, bytes, bytes | None]] = []

    def __call__(self, encoding: str, body: bytes) -> bytes | None:
        for entry in self._entries:
            if entry[1] is body and entry[0] == encoding:
                return entry[2]
        decoded = _undo_encodings(encoding, body)
        self._entries = [(encoding, body, decoded), *self._entries[: _KEPT_BODIES - 1]]
        return decoded


_KEPT_BODIES = 2
"""Those of an exchange."""
_DECODE_CACHE = _DecodeCache()


def _undo_encodings(text: str, body: bytes) -> bytes | None:
    names = [name.strip().lower() for name in text.split(",")]
    for name in reversed([name for name in names if name not in ("", "identity")]):
        if name not in _DECODERS:
            return None
        try:
            body = _DECODERS[name](body)
        except (zlib.error, brotli.error, zstandard.ZstdError):
            return None
    return body


def _decode_gzip(body: bytes) -> bytes:
    out = []
    while body:
        inflater = zlib.decompressobj(wbits=31)
        out.append(inflater.decompress(body))
        body = inflater.unused_data
    return b"".join(out)


def _decode_deflate(body: bytes) -> bytes:
    # RFC 9110 means zlib's format, but some servers send the raw stream.
    try:
        return zlib.decompressobj().decompress(body)
    except zlib.error:
        return zlib.decompressobj(wbits=-15).decompress(body)


def _decode_brotli(body: bytes) -> bytes:
    return bytes(brotli.Decompressor().process(body))


def _decode_zstd(body: bytes) -> bytes:
    # Streamed frames carry no content size, which the one-shot decoder insists on.
    return zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(body)


_DECODERS = {
    "gzip": _decode_gzip,
    "x-gzip": _decode_gzip,
    "deflate": _decode_deflate,
    "br": _decode_brotli,
    "zstd": _decode_zstd,
}
