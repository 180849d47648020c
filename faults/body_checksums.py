"""Update headers that carry a checksum of the body.

Each header value that is a checksum of the old body, in hex or base64, is replaced with that of the
new one: Content-MD5 (RFC 1864), Digest (RFC 3230), Content-Digest and Repr-Digest (RFC 9530),
x-amz-checksum-*, x-goog-hash, and ETags that are an MD5 of the body (S3). Other ETags stay
unchanged, since a client cannot check them.
"""

import hashlib
import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator

from faults.errors import NoInjectionSite
from traces.bodies.content_encoding import decode_content
from traces.model import Headers

_SUM = re.compile(r"(?i)content-md5|(?:content-|repr-)?digest|x-amz-checksum-.+|x-goog-hash")
_APART = ("x-amz-checksum-type", "x-amz-checksum-algorithm")


def make_checksum_updater(headers: Headers, was: bytes, now: bytes) -> Callable[[Headers], Headers]:
    """Return a function that updates headers or trailers for the body `now`, encoded as sent.

    It raises NoInjectionSite if a known checksum header cannot be updated: its algorithm is
    unknown, or it did not match the old body.
    """
    before, after = decode_content(headers, was), decode_content(headers, now)
    pairs = dict(zip(_compute_checksums(was), _compute_checksums(now), strict=True))
    if before is not None and after is not None and before != was:
        pairs |= dict(zip(_compute_checksums(before), _compute_checksums(after), strict=True))

    def seal(headers: Headers) -> Headers:
        return tuple((name, _update_checksums(name, value, pairs)) for name, value in headers)

    return seal


def _update_checksums(name: str, value: str, pairs: dict[str, str]) -> str:
    parts = re.split(r"(,\s*)", value)
    updated = [_replace_checksum(part, pairs) for part in parts]
    if _SUM.fullmatch(name) and name.lower() not in _APART:
        unmatched = [
            part for part, new in zip(parts[::2], updated[::2], strict=True) if new is None
        ]
        if unmatched:
            raise NoInjectionSite(
                f"the answer's {name.lower()} ({unmatched[0]}) could not be kept valid"
            )
    return "".join(part if new is None else new for part, new in zip(parts, updated, strict=True))


def _replace_checksum(part: str, pairs: dict[str, str]) -> str | None:
    """Return the value with its checksum replaced; None if it contains none."""
    for old, new in pairs.items():
        if old in part:
            pattern = rf"(?<![\w+/]){re.escape(old)}(?![\w+/])"
            if re.search(pattern, part):
                return re.sub(pattern, new, part)
    return None


def _compute_checksums(body: bytes) -> Iterator[str]:
    """Yield all checksums of a body in their header forms, always in the same order."""
    digests = [hashlib.new(name, body).digest() for name in ("md5", "sha1", "sha256", "sha512")]
    for digest in (*digests, zlib.crc32(body).to_bytes(4)):
        yield b64encode(digest).decode()
        yield digest.hex()
        yield digest.hex().upper()
