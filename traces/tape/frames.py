"""The bytes of a tape: whole frames, what lies between them, and the blocks of a sealed one."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import zstandard

MAGIC = b"STUMBLE"
FORMAT = 2
HEAD = struct.Struct("<IIB")
BLOCK = 64
MAX_PAYLOAD = 1 << 31
_RESYNC = 1 << 20
_SIP = 256
"""Bytes of a damaged block that are unpacked at once: nothing of a sip with the damage comes."""
_OF_KIND = tuple(crc32(bytes((kind,))) for kind in range(256))


class Frame(NamedTuple):
    """One frame and where it stands in the file; one of a block stands where its block does."""

    kind: int
    payload: memoryview
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a tape that could not be read, and why."""

    offset: int
    length: int
    why: str


def frame(kind: int, payload: bytes) -> bytes:
    """One frame, ready for one write. ValueError for a payload over 2 GiB."""
    if len(payload) >= MAX_PAYLOAD:
        raise ValueError(f"a frame of {len(payload)} bytes is over the limit of {MAX_PAYLOAD}")
    return HEAD.pack(len(payload), crc32(payload, _OF_KIND[kind]), kind) + payload


def parts(kind: int, *payload: bytes) -> tuple[bytes, ...]:
    """One frame of a payload in parts, which are not joined. ValueError as `frame`."""
    length, crc = sum(map(len, payload)), _OF_KIND[kind]
    if length >= MAX_PAYLOAD:
        raise ValueError(f"a frame of {length} bytes is over the limit of {MAX_PAYLOAD}")
    for part in payload:
        crc = crc32(part, crc)
    return HEAD.pack(length, crc, kind), *payload


def preamble() -> bytes:
    """The first eight bytes of every tape."""
    return MAGIC + bytes((FORMAT,))


def read(data: bytes) -> Iterator[Frame | Damage]:
    """The frames of a tape in order, those of blocks too, with the damage between them.

    ValueError where the bytes are no tape at all, or of a newer format.
    """
    for found in outer(data):
        if isinstance(found, Frame) and found.kind == BLOCK:
            yield from _inside(found)
        else:
            yield found


def outer(data: bytes) -> Iterator[Frame | Damage]:
    """The frames of the file itself: blocks stay closed."""
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("not a tape: it does not begin with STUMBLE")
    if len(data) > len(MAGIC) and data[len(MAGIC)] > FORMAT:
        raise ValueError(
            f"tape format {data[len(MAGIC)]}, this version reads up to {FORMAT}: "
            "update stumble to read it"
        )
    return _frames(memoryview(data), len(MAGIC) + 1)


def whole(view: memoryview) -> Iterator[Frame]:
    """The frames that these bytes are; ValueError where they are something else."""
    at = 0
    while at < len(view):
        found = _frame_at(view, at)
        if found is None:
            raise ValueError("no whole frame stands there")
        yield found
        at += found.length


def _frames(view: memoryview, at: int) -> Iterator[Frame | Damage]:
    size = len(view)
    while at < size:
        found = _frame_at(view, at)
        if found is None:
            again = _resync(view, at + 1)
            why = "torn tail" if again is None else "checksum does not fit"
            again = size if again is None else again
            yield from _begun(view[at:again], at)
            yield Damage(at, again - at, why)
            at = again
        else:
            yield found
            at += found.length


def _inside(block: Frame) -> Iterator[Frame | Damage]:
    try:
        data = zstandard.ZstdDecompressor().decompress(block.payload)
    except zstandard.ZstdError as error:
        yield Damage(block.offset, block.length, str(error))
        return
    for found in _frames(memoryview(data), 0):
        if isinstance(found, Frame):
            yield Frame(found.kind, found.payload, block.offset, block.length)
        else:
            yield Damage(block.offset, block.length, found.why)


def _begun(damaged: memoryview, at: int) -> Iterator[Frame]:
    """The frames of a damaged block that stand before the damage."""
    if len(damaged) < HEAD.size or HEAD.unpack_from(damaged)[2] != BLOCK:
        return
    unpacking, data = zstandard.ZstdDecompressor().decompressobj(), b""
    try:
        for start in range(HEAD.size, len(damaged), _SIP):
            data += unpacking.decompress(damaged[start : start + _SIP])
    except zstandard.ZstdError:
        pass  # what came out before is checked frame by frame
    for found in _frames(memoryview(data), 0):
        if not isinstance(found, Frame):
            return
        yield Frame(found.kind, found.payload, at, len(damaged))


def _frame_at(view: memoryview, at: int) -> Frame | None:
    if at + HEAD.size > len(view):
        return None
    length, crc, kind = HEAD.unpack_from(view, at)
    start = at + HEAD.size
    if not 0 < kind <= BLOCK or start + length > len(view):
        return None
    payload = view[start : start + length]
    if crc32(payload, _OF_KIND[kind]) != crc:
        return None
    return Frame(kind, payload, at, HEAD.size + length)


def _resync(view: memoryview, at: int) -> int | None:
    """The next offset at which a whole frame begins, looked for within a bound."""
    # An intact length leads straight to the next frame; only a damaged one needs the search.
    if at - 1 + HEAD.size <= len(view):
        length, _, _ = HEAD.unpack_from(view, at - 1)
        after = at - 1 + HEAD.size + length
        if after < len(view) and _frame_at(view, after) is not None:
            return int(after)
    for offset in range(at, min(len(view), at + _RESYNC)):
        if _frame_at(view, offset) is not None:
            return offset
    return None
