"""Frames: the layer of a tape that survives being killed at any byte.

    tape   = magic(7) format(1) frame*
    frame  = length(4) crc(4) kind(1) payload(length)

Numbers are little-endian; `crc` is zlib's CRC-32 over kind and payload; the payload is one
msgpack value. A frame is written with one `write`, so a process killed between two frames
leaves a whole tape, and one killed inside a write leaves a torn tail that length and CRC
detect. Reading goes on behind a damaged frame: what can be read is read, the rest is named.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"STUMBLE"
FORMAT = 1
HEAD = struct.Struct("<IIB")
KINDS = range(1, 8)
MAX_PAYLOAD = 1 << 31
_RESYNC = 1 << 20


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame and where it stands in the file."""

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
    crc = zlib.crc32(payload, zlib.crc32(bytes((kind,))))
    return HEAD.pack(len(payload), crc, kind) + payload


def preamble() -> bytes:
    """The first eight bytes of every tape."""
    return MAGIC + bytes((FORMAT,))


def read(data: bytes) -> Iterator[Frame | Damage]:
    """The frames of a tape in order, with the damage between them.

    ValueError where the bytes are no tape at all, or of a newer format.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("not a tape: it does not begin with STUMBLE")
    if len(data) > len(MAGIC) and data[len(MAGIC)] > FORMAT:
        raise ValueError(
            f"tape format {data[len(MAGIC)]}, this version reads up to {FORMAT}: "
            "update stumble to read it"
        )
    view, at = memoryview(data), len(MAGIC) + 1
    while at < len(data):
        found = _frame_at(view, at)
        if found is None:
            again = _resync(view, at + 1)
            why = "torn tail" if again is None else "checksum does not fit"
            again = len(data) if again is None else again
            yield Damage(at, again - at, why)
            at = again
        else:
            yield found
            at += found.length


def _frame_at(view: memoryview, at: int) -> Frame | None:
    if at + HEAD.size > len(view):
        return None
    length, crc, kind = HEAD.unpack_from(view, at)
    start = at + HEAD.size
    if kind not in KINDS or start + length > len(view):
        return None
    payload = view[start : start + length]
    if zlib.crc32(payload, zlib.crc32(bytes((kind,)))) != crc:
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
