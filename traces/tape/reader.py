"""Reading a tape: what it says, and what of it could not be read."""

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from traces.model import Ending, Exchange, Injection, Mark, Request, Trajectory
from traces.tape import frames
from traces.tape.contents import CONTENTS, UNFIT
from traces.tape.folding import Folder
from traces.tape.frames import Damage, Frame
from traces.tape.shelf import Book, Shelf, Spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    """What a tape says: exchanges in order of `seq`, and what of it could not be read."""

    path: Path
    trajectory: Trajectory
    exchanges: Sequence[Exchange]
    injections: tuple[Injection, ...] = ()
    marks: tuple[Mark, ...] = ()
    ending: Ending | None = None
    """None for a run that is still going on or was killed."""
    spans: Mapping[int, tuple[int, int]]
    """seq to (offset, length) in the file of what holds its request: its frame, or its block."""
    damage: tuple[Damage, ...] = ()
    verbatim: bool = False
    """True where secrets were written as they came."""

    @property
    def dropped(self) -> int:
        """How many bytes could not be read."""
        return sum({damage.offset: damage.length for damage in self.damage}.values())


def read(path: Path) -> Tape:
    """The tape at `path`, as far as it can be read.

    ValueError where it is no tape, is of a newer format, or lost its first frame.
    """
    try:
        with _no_collection():
            return _fold(path, frames.read(path.read_bytes()))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def browse(path: Path) -> Tape:
    """The tape at `path`, with exchanges that are read when they are first asked for.

    So it is where the tape ends with its contents and not a byte is damaged; any other is read
    whole. An exchange that the contents do not fit is a ValueError. ValueError as `read`.
    """
    try:
        with _no_collection():
            found = tuple(frames.outer(path.read_bytes()))
            if not _has_contents(found):
                return read(path)
            return _browsed(path, Book(path, found))
    except UNFIT as error:
        raise ValueError(f"{path}: {error}") from None


def _has_contents(found: tuple[Frame | Damage, ...]) -> TypeGuard[tuple[Frame, ...]]:
    last = found[-1] if found else None
    if not isinstance(last, Frame) or last.kind != CONTENTS:
        return False
    return all(isinstance(each, Frame) for each in found)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing of a tape is cyclic, and looking for cycles in all of it again and again is dear."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def request(path: Path, seq: int, offset: int, length: int) -> Request:
    """What exchange `seq` asked, whose frame or block the index says stands at `offset`.

    Reads no further than that; where the tape was sealed since, reads on until it is found.
    ValueError where the tape does not hold it.
    """
    data = path.read_bytes()
    for most in (offset + length, len(data)):
        folder, _ = _folded(frames.read(data[:most]))
        for exchange in folder.whole():
            if exchange.seq == seq:
                return exchange.request
    raise ValueError(f"{path}: no exchange {seq} can be read")


def _browsed(path: Path, book: Book) -> Tape:
    rest = book.rest()
    if rest.trajectory is None:
        raise ValueError("the tape has lost its first frame")
    return Tape(
        path=path,
        trajectory=rest.trajectory,
        exchanges=Shelf(book, range(len(book.contents.seqs))),
        injections=tuple(rest.injections),
        marks=tuple(rest.marks),
        ending=rest.ending,
        spans=Spans(book),
        verbatim=rest.verbatim,
    )


def _folded(found: Iterable[Frame | Damage]) -> tuple[Folder, list[Damage]]:
    folder, damage = Folder(), list[Damage]()
    for each in found:
        if isinstance(each, Damage):
            damage.append(each)
            continue
        try:
            folder.fold(each)
        except UNFIT as error:
            damage.append(Damage(each.offset, each.length, f"{type(error).__name__}: {error}"))
    return folder, damage


def _fold(path: Path, found: Iterable[Frame | Damage]) -> Tape:
    folder, damage = _folded(found)
    if folder.trajectory is None:
        raise ValueError("the tape has lost its first frame")
    return Tape(
        path=path,
        trajectory=folder.trajectory,
        exchanges=folder.whole(),
        injections=tuple(folder.injections),
        marks=tuple(folder.marks),
        ending=folder.ending,
        spans=folder.spans,
        damage=tuple(damage),
        verbatim=folder.verbatim,
    )
