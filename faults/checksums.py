"""Headers that name a checksum of the body, made right again.

Any header whose value is a checksum of the old body, in hex or base64, gets that of the new one:
Content-MD5 (RFC 1864), Digest (RFC 3230), Content-Digest and Repr-Digest (RFC 9530),
x-amz-checksum-*, x-goog-hash, and ETags that are an MD5 of the body (S3). An ETag of another
making says nothing that a client could check, and stays.
"""

import hashlib
import re
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator

from faults.nosite import NoSite
from traces.encoding import plain
from traces.model import Headers

_SUM = re.compile(r"(?i)content-md5|(?:content-|repr-)?digest|x-amz-checksum-.+|x-goog-hash")
_APART = ("x-amz-checksum-type", "x-amz-checksum-algorithm")


def resealed(headers: Headers, was: bytes, now: bytes) -> Callable[[Headers], Headers]:
    """What makes headers or trailers right for the body `now` (encoded as on the wire).

    It raises NoSite where one of the known checksums cannot be made: its algorithm is unknown,
    or it was not that of the body before either.
    """
    before, after = plain(headers, was), plain(headers, now)
    pairs = dict(zip(_sums(was), _sums(now), strict=True))
    if before is not None and after is not None and before != was:
        pairs |= dict(zip(_sums(before), _sums(after), strict=True))

    def seal(headers: Headers) -> Headers:
        return tuple((name, _sealed(name, value, pairs)) for name, value in headers)

    return seal


def _sealed(name: str, value: str, pairs: dict[str, str]) -> str:
    parts = re.split(r"(,\s*)", value)
    sealed = [_part(part, pairs) for part in parts]
    if _SUM.fullmatch(name) and name.lower() not in _APART:
        stuck = [part for part, new in zip(parts[::2], sealed[::2], strict=True) if new is None]
        if stuck:
            raise NoSite(f"the answer's {name.lower()} ({stuck[0]}) could not be kept valid")
    return "".join(part if new is None else new for part, new in zip(parts, sealed, strict=True))


def _part(part: str, pairs: dict[str, str]) -> str | None:
    """One value with its checksum replaced; None where it has none."""
    for old, new in pairs.items():
        if old in part:
            alone = rf"(?<![\w+/]){re.escape(old)}(?![\w+/])"
            if re.search(alone, part):
                return re.sub(alone, new, part)
    return None


def _sums(body: bytes) -> Iterator[str]:
    """All checksums of a body as they may stand in a header, always in the same order."""
    digests = [hashlib.new(name, body).digest() for name in ("md5", "sha1", "sha256", "sha512")]
    for digest in (*digests, zlib.crc32(body).to_bytes(4)):
        yield b64encode(digest).decode()
        yield digest.hex()
        yield digest.hex().upper()
