"""The bytes of a tape: frames, damage between them, and the blocks of a sealed tape."""

import struct
from collections.abc import Iterator
from mmap import mmap
from typing import NamedTuple
from zlib import crc32

import zstandard
from msgspec import Struct

from traces.tape.inflation import RATIO, SMALL, InflationBudget, inflate

MAGIC = b"STUMBLE"
FORMAT = 2
HEAD = struct.Struct("<IIB")
BLOCK = 64
MAX_PAYLOAD = 1 << 31
_RESYNC = 1 << 20
_SIP_SIZE = 256
"""Bytes of a damaged block per decompression step: the step with the damage yields nothing."""
_MAX_CHECKS_PER_BYTE = 16
"""Checksummed bytes per byte of the tape, at most, while searching for frames."""
_CHUNK, _REDACTIONS, _RULES, _LAST_KIND = 4, 10, 11, 11
"""The kinds whose payload is a list, and the last known kind except blocks."""
_CRC_OF_KIND = tuple(crc32(bytes((kind,))) for kind in range(256))


class TapeFrame(NamedTuple):
    """One frame and its place in the file; a frame in a block has the place of the block."""

    kind: int
    payload: memoryview
    offset: int
    length: int


class TapeDamage(Struct, frozen=True):
    """A stretch of a tape that could not be read, and the reason."""

    offset: int
    length: int
    why: str


def encode_frame(kind: int, payload: bytes) -> bytes:
    """Encode one frame for a single write. Raises ValueError for a payload of 2 GiB or more."""
    if len(payload) >= MAX_PAYLOAD:
        raise ValueError(f"a frame of {len(payload)} bytes is over the limit of {MAX_PAYLOAD}")
    return HEAD.pack(len(payload), crc32(payload, _CRC_OF_KIND[kind]), kind) + payload


def encode_frame_parts(kind: int, *payload: bytes) -> tuple[bytes, ...]:
    """Encode one frame from parts of its payload, without joining them.

    Raises ValueError as `encode_frame` does.
    """
    length, crc = sum(map(len, payload)), _CRC_OF_KIND[kind]
    if length >= MAX_PAYLOAD:
        raise ValueError(f"a frame of {length} bytes is over the limit of {MAX_PAYLOAD}")
    for part in payload:
        crc = crc32(part, crc)
    return HEAD.pack(length, crc, kind), *payload


def make_tape_preamble() -> bytes:
    """Return the first eight bytes of every tape."""
    return MAGIC + bytes((FORMAT,))


def read_frames(
    data: bytes | mmap, budget: InflationBudget | None = None
) -> Iterator[TapeFrame | TapeDamage]:
    """Yield the frames of a tape in order, including those in blocks, and the damage between them.

    Raises ValueError if the bytes are not a tape, or are of a newer format. Decompressed blocks are
    charged to the budget; a block that exceeds it is damage.
    """
    budget = budget or InflationBudget(len(data))
    for each in read_outer_frames(data):
        if isinstance(each, TapeFrame) and each.kind == BLOCK:
            yield from _read_block_frames(each, budget)
        else:
            yield each


def read_outer_frames(data: bytes | mmap) -> Iterator[TapeFrame | TapeDamage]:
    """Yield the frames of the file without opening its blocks."""
    if not data:
        raise ValueError("not a tape: it is empty, as its recorder ended before it wrote anything")
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("not a tape: it does not begin with STUMBLE")
    if len(data) > len(MAGIC) and data[len(MAGIC)] > FORMAT:
        raise ValueError(
            f"tape format {data[len(MAGIC)]}, this version reads up to {FORMAT}: "
            "update stumble to read it"
        )
    return _scan_frames(memoryview(data), len(MAGIC) + 1)


def parse_whole_frames(view: memoryview) -> Iterator[TapeFrame]:
    """Yield the frames in these bytes; ValueError unless they are complete frames."""
    at = 0
    while at < len(view):
        frame = _parse_frame_at(view, at)
        if frame is None:
            raise ValueError("no whole frame stands there")
        yield frame
        at += frame.length


def _scan_frames(view: memoryview, at: int) -> Iterator[TapeFrame | TapeDamage]:
    size, search = len(view), _FrameSearch(view)
    while at < size:
        frame = _parse_frame_at(view, at)
        if frame is None:
            following = search.resync(at + 1)
            why = "torn tail" if following is None else "checksum does not fit"
            following = size if following is None else following
            yield from _recover_block_frames(view[at:following], at)
            yield TapeDamage(at, following - at, why)
            at = following
        else:
            yield frame
            at += frame.length


def _read_block_frames(
    block: TapeFrame, budget: InflationBudget
) -> Iterator[TapeFrame | TapeDamage]:
    try:
        data = inflate(block.payload, budget)
    except (ValueError, zstandard.ZstdError) as error:
        yield TapeDamage(block.offset, block.length, str(error))
        return
    for each in _scan_frames(memoryview(data), 0):
        if isinstance(each, TapeFrame):
            yield TapeFrame(each.kind, each.payload, block.offset, block.length)
        else:
            yield TapeDamage(block.offset, block.length, each.why)


def _recover_block_frames(damaged: memoryview, at: int) -> Iterator[TapeFrame]:
    """Yield the frames of a damaged block before the damage."""
    if len(damaged) < HEAD.size or HEAD.unpack_from(damaged)[2] != BLOCK:
        return
    decompressor, data = zstandard.ZstdDecompressor().decompressobj(), bytearray()
    max_size = max(SMALL, RATIO * len(damaged))
    try:
        for start in range(HEAD.size, len(damaged), _SIP_SIZE):
            data += decompressor.decompress(damaged[start : start + _SIP_SIZE])
            if decompressor.eof or len(data) > max_size:
                break
    except zstandard.ZstdError:
        pass  # the bytes decompressed before are checked frame by frame
    for each in _scan_frames(memoryview(data), 0):
        if not isinstance(each, TapeFrame):
            return
        yield TapeFrame(each.kind, each.payload, at, len(damaged))


def _parse_frame_at(view: memoryview, at: int) -> TapeFrame | None:
    if at + HEAD.size > len(view):
        return None
    length, crc, kind = HEAD.unpack_from(view, at)
    start = at + HEAD.size
    if not 0 < kind <= BLOCK or start + length > len(view):
        return None
    payload = view[start : start + length]
    if crc32(payload, _CRC_OF_KIND[kind]) != crc:
        return None
    return TapeFrame(kind, payload, at, HEAD.size + length)


class _FrameSearch:
    """Searches for complete frames after damage, within a bound set by the size of the tape.

    A length read at a wrong offset can be any number: without the bound, a crafted tape could have
    all of its bytes checksummed once for each of its bytes.
    """

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._left = _MAX_CHECKS_PER_BYTE * len(view) + _RESYNC

    def resync(self, at: int) -> int | None:
        """Return the next offset at which a complete frame begins; None if not within bounds."""
        # An intact length leads straight to the next frame; only a damaged one needs the search.
        if at - 1 + HEAD.size <= len(self._view):
            length, _, _ = HEAD.unpack_from(self._view, at - 1)
            after = at - 1 + HEAD.size + length
            if after < len(self._view) and self._is_whole(after):
                return int(after)
        for offset in range(at, min(len(self._view) - HEAD.size, at + _RESYNC)):
            kind = offset + HEAD.size - 1
            if _can_begin_frame(self._view[kind : kind + 5]) and self._is_whole(offset):
                return offset
            if self._left < 0:
                return None
        return None

    def _is_whole(self, at: int) -> bool:
        """Whether a valid frame begins here; False once the search bound is used up."""
        if at + HEAD.size > len(self._view):
            return False
        length = HEAD.unpack_from(self._view, at)[0]
        if at + HEAD.size + length > len(self._view):
            return False
        self._left -= length
        return self._left >= 0 and _parse_frame_at(self._view, at) is not None


def _can_begin_frame(begin: memoryview) -> bool:
    """Whether a known kind and the first four bytes of a payload fit together.

    The payload begins with a msgpack map whose first key is a short text, a list that begins with a
    number, or a zstd frame.
    """
    if len(begin) < 5:
        return False
    kind, first, second = begin[0], begin[1], begin[2]
    if kind == BLOCK:
        return bytes(begin[1:]) == zstandard.FRAME_HEADER
    if kind == _CHUNK:
        return 0x90 < first <= 0x9F and (second <= 0x7F or 0xCC <= second <= 0xCF)
    if kind == _RULES:
        return (0x90 < first <= 0x9F or first == 0xDC) and len(begin) == 5
    if kind == _REDACTIONS:
        return 0x90 < first <= 0x9F and 0x80 < second <= 0x8F
    key_type = begin[4] if first == 0xDE else second
    return (
        0 < kind <= _LAST_KIND
        and (0x80 < first <= 0x8F or first == 0xDE)
        and 0xA0 <= key_type <= 0xBF
    )
