"""Sealing: a finished tape becomes a small one that says the same.

While a run goes on a tape is written for survival, each fact on its own. Once it is over its
frames are compressed together: what many say alike (headers, the shape of an answer, a text
that a tool returned and the next request repeats) is then stored once.
"""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import zstandard

from traces.tape import contents, frames
from traces.tape.contents import CONTENTS
from traces.tape.frames import BLOCK, Frame
from traces.tape.payload import pack, unpack
from traces.tape.writer import CHUNK, REQUEST, TRAJECTORY

LEVEL = 9
BLOCK_SIZE = 1 << 19
"""Bytes of frames that are compressed together: enough for a key body to find its texts."""
MUCH, SMALL_BLOCK = 1 << 24, 1 << 16
"""Bytes of a tape that is no conversation but many of them, and of its blocks: who asks all over
it has one opened for each answer."""
STRIDE = 1 << 12
"""Bytes of frames after which what was packed can be read without what follows."""


def seal(path: Path) -> bool:
    """Put a sealed tape in the place of this one, whole or not at all; False if it stays.

    It stays where it is sealed, has no frames, is still being written, is being sealed by
    another process, or is damaged: then it is evidence. ValueError where it is no tape; OSError
    where there is no room for the new one, and the old one is as it was.
    """
    with path.open("rb") as old:
        if not _held(old, path):
            return False
        found = list(frames.outer(old.read()))
        whole = [each for each in found if isinstance(each, Frame)]
        if (
            not whole
            or len(whole) < len(found)
            or any(each.kind in (BLOCK, CONTENTS) for each in whole)
        ):
            return False
        size = sum(each.length for each in whole)
        with _aside(path) as new:
            with new.open("wb") as file:
                file.write(frames.preamble())
                file.writelines(_sealed(whole, BLOCK_SIZE if size < MUCH else SMALL_BLOCK))
                file.flush()
                os.fsync(file.fileno())
            _check(whole, new)
            shutil.copystat(path, new)
            new.replace(path)
    return True


def _held(file: BinaryIO, path: Path) -> bool:
    """True once the tape is ours alone: nobody writes it, and nobody has put another there."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())


@contextmanager
def _aside(path: Path) -> Iterator[Path]:
    """A file beside the tape that only its holder makes; what a killed one left is in the way
    of nobody, and gone the next time.
    """
    aside = path.with_name(f".{path.name}.sealing")
    aside.unlink(missing_ok=True)
    try:
        yield aside
    finally:
        aside.unlink(missing_ok=True)


def _sealed(whole: Iterable[Frame], block: int) -> Iterator[bytes]:
    """The first frame as it is, since a tape that loses it is none; the others in blocks; then
    the contents.
    """
    noting, waiting, size = contents.Noting(), list[bytes](), 0
    for each in whole:
        frame = frames.frame(each.kind, _plain(each))
        noting.note(each, len(frame))
        if each.kind == TRAJECTORY:
            yield frame
            continue
        waiting.append(frame)
        size += len(frame)
        if size >= block:
            yield frames.frame(BLOCK, _packed(b"".join(waiting)))
            waiting, size = [], 0
    if waiting:
        yield frames.frame(BLOCK, _packed(b"".join(waiting)))
    yield noting.frame()


def _packed(data: bytes) -> bytes:
    """One zstd frame that ends a zstd block every `STRIDE` bytes: damage costs what follows it."""
    packer = zstandard.ZstdCompressor(level=LEVEL).compressobj(size=len(data))
    out = []
    for at in range(0, len(data), STRIDE):
        out.append(packer.compress(data[at : at + STRIDE]))
        out.append(packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    return b"".join([*out, packer.flush()])


def _plain(frame: Frame) -> bytes:
    """The payload with its packed bytes unpacked, since all is packed together."""
    if frame.kind in (REQUEST, CHUNK):
        return pack(unpack(frame.payload))
    return bytes(frame.payload)


def _check(whole: Iterable[Frame], new: Path) -> None:
    """RuntimeError unless the new tape says what the old one says, frame by frame."""
    said = [(each.kind, _plain(each)) for each in whole]
    now = [
        (each.kind, bytes(each.payload)) if isinstance(each, Frame) else None
        for each in frames.read(new.read_bytes())
        if not isinstance(each, Frame) or each.kind != CONTENTS
    ]
    if said != now:
        raise RuntimeError(f"{new}: sealing did not keep what the tape says; the old one stays")
