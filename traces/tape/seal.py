"""Sealing: rewrite a finished tape as a smaller one with the same contents.

During a run a tape is written for durability, each fact in a separate frame. Afterwards its frames
are compressed together, so that repeated text (headers, the structure of a response, a tool result
that the next request repeats) is stored once.
"""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import zstandard

from traces.bodies.chained_body import measure_body, read_body
from traces.tape import frames
from traces.tape.frame_kinds import CHUNK, REQUEST, TRAJECTORY
from traces.tape.frames import BLOCK, TapeFrame
from traces.tape.inflation import RATIO, InflationBudget
from traces.tape.payload import pack, unpack
from traces.tape.random_access import SealedTape
from traces.tape.table_of_contents import CONTENTS, TableOfContentsBuilder

REPLAY_LEVEL, LEVEL, THOROUGH_LEVEL = 3, 9, 19
"""Levels of zstd for what a replay or fork wrote, for imported or large tapes, and for a recording,
which is kept and read often. 9 takes three times as long as 3 and saves 6 %."""
BLOCK_SIZE, WINDOW_LOG = 1 << 23, 23
"""Bytes of frames compressed together, and the window of the same size: agents read a file again
after a hundred steps, and send the same tools with every request."""
_SMALL_TABLES = {"chain_log": 22, "hash_log": 20}
"""Logarithms of the sizes of zstd's tables at level 19: 20 MB instead of 80, for 0.4 % of size."""
LARGE_TAPE, SMALL_BLOCK = 1 << 24, 1 << 15
"""Size in bytes of a tape with many conversations, and its block size: random access to it opens a
block for each response.
"""
SHORT_BODY = 1 << 13
"""Size in bytes up to which a body is stored in full."""
SHORT_STRIDE, LONG_STRIDE = 1 << 12, 1 << 15
"""Bytes of frames per zstd block, each of which is readable without those after it: a 64th of all
within these bounds, since each costs some bytes."""


def seal_tape(path: Path) -> bool:
    """Replace a tape by its sealed form atomically; False if it stays as it is.

    It stays if it is sealed, has no frames, is being written, is being sealed by another process,
    is damaged (the damage is evidence), or would be so small that its contents exceed the inflation
    bounds. Raises ValueError if it is not a tape, and OSError if the disk is full; the old tape is
    then unchanged.
    """
    with path.open("rb") as old:
        if not _lock_tape(old, path):
            return False
        try:
            outer = list(frames.read_outer_frames(old.read()))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        tape_frames = tuple(each for each in outer if isinstance(each, TapeFrame))
        if (
            not tape_frames
            or len(tape_frames) < len(outer)
            or any(each.kind in (BLOCK, CONTENTS) for each in tape_frames)
        ):
            return False
        size = sum(each.length for each in tape_frames)
        budget = InflationBudget(size)
        noting = TableOfContentsBuilder(tape_frames, budget)
        if not noting.fits:
            return False
        with _temporary_sealing_path(path) as new:
            with new.open("wb") as file:
                file.write(frames.make_tape_preamble())
                file.writelines(
                    _encode_sealed_frames(
                        tape_frames,
                        noting,
                        BLOCK_SIZE if size < LARGE_TAPE else SMALL_BLOCK,
                        _choose_level(tape_frames[0], size),
                    )
                )
                file.flush()
                os.fsync(file.fileno())
            if not InflationBudget(new.stat().st_size).has_room(budget, 2 * size):
                return False
            _check_sealed_tape(tape_frames, noting, new)
            shutil.copystat(path, new)
            new.replace(path)
    return True


def _lock_tape(file: BinaryIO, path: Path) -> bool:
    """Lock the tape; False if another process holds it, or the path names another file by now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())


@contextmanager
def _temporary_sealing_path(path: Path) -> Iterator[Path]:
    """Yield a path next to the tape, without the file that a killed process may have left there."""
    aside = path.with_name(f".{path.name}.sealing")
    aside.unlink(missing_ok=True)
    try:
        yield aside
    finally:
        aside.unlink(missing_ok=True)


def _encode_sealed_frames(
    whole: Iterable[TapeFrame], noting: TableOfContentsBuilder, block: int, level: int
) -> Iterator[bytes]:
    """Yield the first frame as it is, since a tape without it is unreadable; then blocks; then the
    contents.
    """
    pending, size = list[bytes](), 0
    for each in whole:
        frame = frames.encode_frame(each.kind, _to_unpacked_payload(each, noting))
        noting.add_frame_size(len(frame))
        if each.kind == TRAJECTORY:
            yield frame
            continue
        pending.append(frame)
        size += len(frame)
        if size >= block:
            yield frames.encode_frame(BLOCK, _compress_block(b"".join(pending), level))
            pending, size = [], 0
    if pending:
        yield frames.encode_frame(BLOCK, _compress_block(b"".join(pending), level))
    yield noting.build_frame()


def _choose_level(first: TapeFrame, size: int) -> int:
    """Return the level for a tape with this first frame; a large recording would take minutes."""
    source = unpack(first.payload).get("source", "record") if first.kind == TRAJECTORY else None
    if source in ("replay", "fork"):
        return REPLAY_LEVEL
    return THOROUGH_LEVEL if source == "record" and size < LARGE_TAPE else LEVEL


def _compress_block(data: bytes, level: int) -> bytes:
    """Compress to one zstd frame of many zstd blocks, to contain damage.

    A reader refuses more than RATIO bytes per byte, which short zstd blocks cannot come to.
    """
    packed = _compress_strides(data, level, min(max(SHORT_STRIDE, len(data) // 64), LONG_STRIDE))
    if len(packed) * RATIO // 2 < len(data):
        return _compress_strides(data, level, SHORT_STRIDE)
    return packed


def _compress_strides(data: bytes, level: int, stride: int) -> bytes:
    """Compress with a zstd block per `stride` bytes."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level,
        window_log=min(WINDOW_LOG, max(10, len(data).bit_length())),
        enable_ldm=True,
        source_size=len(data),
        **(_SMALL_TABLES if level == THOROUGH_LEVEL else {}),
    )
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=len(data))
    out = []
    for at in range(0, len(data), stride):
        out.append(packer.compress(data[at : at + stride]))
        out.append(packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    return b"".join([*out, packer.flush()])


def _to_unpacked_payload(frame: TapeFrame, noting: TableOfContentsBuilder | None = None) -> bytes:
    """Return the payload with its packed bytes unpacked, since the block is compressed.

    If the tape has contents, a short body is stored in full: one exchange can then be read without
    those before it, and the block compression removes the repetition.
    """
    if frame.kind not in (REQUEST, CHUNK):
        return bytes(frame.payload)
    value = unpack(frame.payload)
    if frame.kind == REQUEST and noting is not None and noting.ordered:
        body = noting.bodies[value["seq"]]
        value |= {"body": read_body(body)} if measure_body(body) <= SHORT_BODY else {}
    return pack(value)


def _check_sealed_tape(
    whole: tuple[TapeFrame, ...], noting: TableOfContentsBuilder, new: Path
) -> None:
    """Raise RuntimeError unless the new tape has the contents of the old one."""
    if not (
        _has_same_exchanges(whole, noting, new) if noting.ordered else _has_same_frames(whole, new)
    ):
        raise RuntimeError(f"{new}: sealing did not keep what the tape says; the old one stays")


def _has_same_exchanges(
    whole: Iterable[TapeFrame], noting: TableOfContentsBuilder, new: Path
) -> bool:
    """Whether the new tape has the same exchanges by its contents, and the same loose frames."""
    data = new.read_bytes()
    outer = tuple(each for each in frames.read_outer_frames(data) if isinstance(each, TapeFrame))
    book = SealedTape(new, outer, InflationBudget(len(data)))
    same = all(book.read_exchange(n) == each for n, each in enumerate(noting.exchanges))
    rest = [(each.kind, bytes(each.payload)) for each in book.find_loose_frames()]
    return same and rest == [
        (each.kind, bytes(each.payload)) for each in noting.find_loose_frames(whole)
    ]


def _has_same_frames(whole: Iterable[TapeFrame], new: Path) -> bool:
    old_frames = [(each.kind, _to_unpacked_payload(each)) for each in whole]
    new_frames = [
        (each.kind, bytes(each.payload)) if isinstance(each, TapeFrame) else None
        for each in frames.read_frames(new.read_bytes())
    ]
    return old_frames == new_frames
