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

from traces.tape import frames
from traces.tape.contents import CONTENTS, Noting
from traces.tape.frames import BLOCK, Frame
from traces.tape.payload import pack, unpack
from traces.tape.shelf import Book
from traces.tape.writer import CHUNK, REQUEST, TRAJECTORY

LEVEL = 9
BLOCK_SIZE = 1 << 19
"""Bytes of frames that are compressed together: enough for a key body to find its texts."""
MUCH, SMALL_BLOCK = 1 << 24, 1 << 15
"""Bytes of a tape that is no conversation but many of them, and of its blocks: who asks all over
it has one opened for each answer."""
SHORT = 1 << 13
"""Bytes of a body up to which it is said in full."""
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
        whole = tuple(each for each in found if isinstance(each, Frame))
        if (
            not whole
            or len(whole) < len(found)
            or any(each.kind in (BLOCK, CONTENTS) for each in whole)
        ):
            return False
        size, noting = sum(each.length for each in whole), Noting(whole)
        with _aside(path) as new:
            with new.open("wb") as file:
                file.write(frames.preamble())
                file.writelines(_sealed(whole, noting, BLOCK_SIZE if size < MUCH else SMALL_BLOCK))
                file.flush()
                os.fsync(file.fileno())
            _check(whole, noting, new)
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


def _sealed(whole: Iterable[Frame], noting: Noting, block: int) -> Iterator[bytes]:
    """The first frame as it is, since a tape that loses it is none; the others in blocks; then
    the contents.
    """
    waiting, size = list[bytes](), 0
    for each in whole:
        frame = frames.frame(each.kind, _plain(each, noting))
        noting.note(len(frame))
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


def _plain(frame: Frame, noting: Noting | None = None) -> bytes:
    """The payload with its packed bytes unpacked, since all is packed together.

    A short body is said in full, where the tape has contents: who reads one exchange has not to
    read those before it, and what they have in common is packed away.
    """
    if frame.kind not in (REQUEST, CHUNK):
        return bytes(frame.payload)
    value = unpack(frame.payload)
    if frame.kind == REQUEST and noting is not None and noting.ordered:
        body = noting.bodies[value["seq"]]
        value |= {"body": body} if len(body) <= SHORT else {}
    return pack(value)


def _check(whole: tuple[Frame, ...], noting: Noting, new: Path) -> None:
    """RuntimeError unless the new tape says what the old one says."""
    if not (_same_exchanges(whole, noting, new) if noting.ordered else _same_frames(whole, new)):
        raise RuntimeError(f"{new}: sealing did not keep what the tape says; the old one stays")


def _same_exchanges(whole: Iterable[Frame], noting: Noting, new: Path) -> bool:
    """True where each exchange is the same by the contents, and so is what belongs to none."""
    found = tuple(each for each in frames.outer(new.read_bytes()) if isinstance(each, Frame))
    book = Book(new, found)
    alike = all(book.exchange(n) == each for n, each in enumerate(noting.exchanges))
    rest = [(each.kind, bytes(each.payload)) for each in book.loose()]
    return alike and rest == [(each.kind, bytes(each.payload)) for each in noting.loose(whole)]


def _same_frames(whole: Iterable[Frame], new: Path) -> bool:
    said = [(each.kind, _plain(each)) for each in whole]
    now = [
        (each.kind, bytes(each.payload)) if isinstance(each, Frame) else None
        for each in frames.read(new.read_bytes())
    ]
    return said == now
