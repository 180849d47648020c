"""The exchanges of a sealed tape, each read when it is first asked for."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import overload

import zstandard

from traces.model import Exchange
from traces.tape import contents, frames
from traces.tape.contents import CONTENTS, UNFIT, Contents, key_of, over
from traces.tape.folding import Folder, body, parent
from traces.tape.frames import BLOCK, Frame
from traces.tape.payload import unpack

_OPEN = 8
"""Blocks that are kept unpacked: who asks goes on where it was, in a few places at once."""


class Book:
    """The bytes of a sealed tape, and where in them everything stands."""

    def __init__(self, path: Path, outer: tuple[Frame, ...]) -> None:
        """`UNFIT` where the last of the frames holds no contents."""
        *self._outer, last = outer
        if last.kind != CONTENTS:
            raise ValueError("the tape does not end with contents")
        self.path = path
        self.contents: Contents = contents.read(last.payload)
        self._starts = tuple(accumulate(map(_size, self._outer), initial=0))
        self._opened = lru_cache(_OPEN)(self._open)
        self._zstd = zstandard.ZstdDecompressor()
        self._bodies = _Bodies(self)
        self._numbers = {seq: number for number, seq in enumerate(self.contents.seqs)}

    def exchange(self, number: int) -> Exchange:
        """The exchange with this place in the contents; ValueError where it is another one."""
        try:
            folder = Folder(self._bodies)
            for frame in self._frames(number):
                folder.fold(frame)
            (found,) = folder.whole()
        except UNFIT as error:
            raise self._refusal(number) from error
        said = self.contents
        fits = found.seq == said.seqs[number] and key_of(found.request) == said.keys[number]
        if not fits or over(found) == (found.seq in said.open):
            raise self._refusal(number)
        return found

    def rest(self) -> Folder:
        """What belongs to no exchange."""
        folder = Folder()
        for frame in self.loose():
            folder.fold(frame)
        return folder

    def loose(self) -> Iterator[Frame]:
        """The frames that belong to no exchange."""
        for start, stop in self.contents.rest:
            yield from self._between(start, stop)

    def span(self, seq: int) -> tuple[int, int]:
        """Offset and length in the file of what holds the request; KeyError for an unknown seq."""
        frame = next(self._frames(self._numbers[seq]))
        return frame.offset, frame.length

    def _refusal(self, number: int) -> ValueError:
        return ValueError(
            f"{self.path}: its contents do not fit exchange {self.contents.seqs[number]}"
        )

    def read_body(self, seq: int) -> bytes:
        """A body that is the parent of others, after those by way of which it is said itself."""
        behind, at = list[tuple[int, object]](), seq
        while at not in self._bodies:
            frame = next(self._frames(self._numbers[at]))
            said = unpack(frame.payload)["body"]
            behind.append((at, said))
            above = parent(said)
            if above is None:
                break
            if len(behind) > len(self._numbers):
                raise ValueError("its bodies are said by way of one another")
            at = above
        for at, said in reversed(behind):
            self._bodies[at] = body(said, self._bodies)
        return self._bodies[seq]

    def _frames(self, number: int) -> Iterator[Frame]:
        """The frames of one exchange."""
        said = self.contents
        for run in range(said.firsts[number], said.firsts[number + 1]):
            yield from self._between(said.starts[run], said.stops[run])

    def _between(self, start: int, stop: int) -> Iterator[Frame]:
        """The frames between two edges; ValueError where none begins or ends there."""
        if not 0 <= start < stop <= self._starts[-1]:
            raise ValueError("nothing stands there")
        while start < stop:
            number = bisect_right(self._starts, start) - 1
            holder, at = self._outer[number], start - self._starts[number]
            piece = self._opened(number)[at : at + stop - start]
            for found in frames.whole(piece):
                yield Frame(found.kind, found.payload, holder.offset, holder.length)
            start += len(piece)

    def _open(self, number: int) -> memoryview:
        frame = self._outer[number]
        if frame.kind == BLOCK:
            return memoryview(self._zstd.decompress(frame.payload))
        return memoryview(frames.frame(frame.kind, bytes(frame.payload)))


class _Bodies(dict[int, bytes]):
    """The bodies that were read so far, by seq; others are read from the book."""

    def __init__(self, book: Book) -> None:
        super().__init__()
        self._book = book

    def __missing__(self, seq: int) -> bytes:
        return self._book.read_body(seq)


def _size(frame: Frame) -> int:
    """Bytes of the frames that it stands for."""
    if frame.kind == BLOCK:
        return int(zstandard.frame_content_size(frame.payload))
    return frame.length


class Shelf(Sequence[Exchange]):
    """Exchanges in the order of asking; reading one is ValueError where the contents lie."""

    def __init__(self, book: Book, numbers: Sequence[int]) -> None:
        self._book, self._numbers = book, numbers
        self._read: dict[int, Exchange] = {}

    def keys(self) -> Iterator[bytes]:
        """The key of each."""
        keys = self._book.contents.keys
        return (keys[number] for number in self._numbers)

    def over(self) -> "Shelf":
        """Those that are over; the others are read, lest one of them is."""
        said = self._book.contents
        open = {n for n in self._numbers if said.seqs[n] in said.open} if said.open else ()
        for number in open:
            self._book.exchange(number)
        return Shelf(self._book, [n for n in self._numbers if n not in open]) if open else self

    def open(self) -> "Shelf":
        """The others."""
        said = self._book.contents
        return Shelf(self._book, [n for n in self._numbers if said.seqs[n] in said.open])

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Exchange: ...
    @overload
    def __getitem__(self, place: slice) -> "Shelf": ...
    def __getitem__(self, place: int | slice) -> "Exchange | Shelf":
        if isinstance(place, slice):
            return Shelf(self._book, self._numbers[place])
        number = self._numbers[place]
        if (found := self._read.get(number)) is None:
            found = self._read[number] = self._book.exchange(number)
        return found


class Spans(Mapping[int, tuple[int, int]]):
    """Where the request of each exchange stands in the file."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def __getitem__(self, seq: int) -> tuple[int, int]:
        return self._book.span(seq)

    def __iter__(self) -> Iterator[int]:
        return iter(self._book.contents.seqs)

    def __len__(self) -> int:
        return len(self._book.contents.seqs)
