"""One exchange of a tape of any size, without reading the others into memory.

A sealed tape has a table of contents. Of any other, the places of the frames are listed once, and
their values read where they are wanted. The file is mapped, so its bytes are the kernel's cache,
and given back every few megabytes while it is listed.
"""

import mmap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from traces.model import Exchange, Trajectory
from traces.tape import frames
from traces.tape.decoder import TapeBody, TapeDecoder
from traces.tape.frame_kinds import CHUNK, DONE, HEAD, REQUEST
from traces.tape.frames import BLOCK, TapeFrame
from traces.tape.inflation import InflationBudget, inflate
from traces.tape.payload import unpack
from traces.tape.random_access import SealedTape, read_chained_body
from traces.tape.table_of_contents import CONTENTS, DECODE_ERRORS

RELEASE_BYTES = 1 << 24
"""Bytes of the file after which its pages are given back while it is listed."""
OPEN_BLOCKS = 2
"""Decompressed blocks that are kept of a tape without contents."""


def read_tape_head(path: Path) -> Trajectory:
    """Read the first frame of a tape. Raises ValueError if the file is none."""
    decoder = TapeDecoder(InflationBudget(0))
    try:
        for frame in frames.read_outer_frames(_map_whole_file(path)):
            if isinstance(frame, TapeFrame):
                decoder.add_frame(frame)
            break
    except DECODE_ERRORS as error:
        raise ValueError(f"{path}: {error}") from None
    if decoder.trajectory is None:
        raise ValueError(f"{path}: not a tape, or one that lost its first frame")
    return decoder.trajectory


class FramePlace(NamedTuple):
    """Where a frame is: the number of the outer frame, and its bytes in it if that is a block."""

    number: int
    start: int
    stop: int


class TapeAccess:
    """The frames of one tape file, and its exchanges by seq.

    A tape that grows needs a new one: see `size`.
    """

    def __init__(self, path: Path) -> None:
        """List the frames. Raises ValueError if the file is no tape, OSError if it is gone."""
        self.path = path
        self._data = _map_whole_file(path)
        self.size = len(self._data)
        self._sealed: SealedTape | None = None
        self._frames = defaultdict[int, list[FramePlace]](list)
        self._blocks: tuple[TapeFrame, ...] = ()
        self._open_block = lru_cache(OPEN_BLOCKS)(self._inflate_block)
        self._budget = InflationBudget(self.size)
        try:
            outer = tuple(self._scan_outer_frames())
            if outer and outer[-1].kind == CONTENTS:
                self._sealed = SealedTape(path, outer, self._budget)
                self._numbers = {seq: at for at, seq in enumerate(self._sealed.contents.seqs)}
            else:
                self._list_frames(outer)
        except DECODE_ERRORS as error:
            raise ValueError(f"{path}: {error}") from None
        self._data.madvise(mmap.MADV_DONTNEED)

    @property
    def seqs(self) -> tuple[int, ...]:
        """The exchanges of the tape."""
        return tuple(self._numbers if self._sealed else sorted(self._frames))

    def read_exchange(self, seq: int) -> Exchange:
        """Read one exchange. Raises KeyError for an unknown seq, ValueError if it is damaged."""
        if self._sealed is not None:
            return self._sealed.read_exchange(self._numbers[seq])
        if seq not in self._frames:
            raise KeyError(seq)
        decoder = TapeDecoder(InflationBudget(self.size), _UnsealedBodies(self._read_request))
        try:
            for place in self._frames[seq]:
                decoder.add_frame(self._read_frame(place))
            (exchange,) = decoder.to_exchanges()
        except DECODE_ERRORS as error:
            raise ValueError(f"{self.path}: exchange {seq}: {error}") from None
        return exchange

    def _scan_outer_frames(self) -> Iterator[TapeFrame]:
        released = 0
        for frame in frames.read_outer_frames(self._data):
            if isinstance(frame, TapeFrame):
                yield frame
            if frame.offset - released > RELEASE_BYTES:
                self._data.madvise(mmap.MADV_DONTNEED)
                released = frame.offset

    def _list_frames(self, outer: tuple[TapeFrame, ...]) -> None:
        """List where the frames of each exchange are; no block stays in memory."""
        self._blocks = outer
        for number, frame in enumerate(outer):
            inner: Iterable[TapeFrame] = (frame,)
            self._data.madvise(mmap.MADV_DONTNEED)
            if frame.kind == BLOCK:
                block = inflate(frame.payload, self._budget)
                inner = frames.parse_whole_frames(memoryview(block))
            at = 0
            for each in inner:
                place = FramePlace(number, at, at + each.length)
                at += each.length
                if each.kind in (REQUEST, HEAD, DONE):
                    self._frames[unpack(each.payload)["seq"]].append(place)
                elif each.kind == CHUNK:
                    self._frames[unpack(each.payload)[0]].append(place)

    def _read_frame(self, place: FramePlace) -> TapeFrame:
        holder = self._blocks[place.number]
        if holder.kind != BLOCK:
            return holder
        block = memoryview(self._open_block(place.number))
        return next(frames.parse_whole_frames(block[place.start : place.stop]))

    def _inflate_block(self, number: int) -> bytes:
        return inflate(self._blocks[number].payload)

    def _read_request(self, seq: int) -> TapeFrame:
        return self._read_frame(self._frames[seq][0])


class _UnsealedBodies(dict[int, TapeBody]):
    """Bodies by seq; those that are not read yet are read from the frames."""

    def __init__(self, read_request: Callable[[int], TapeFrame]) -> None:
        super().__init__()
        self._read_request = read_request

    def __missing__(self, seq: int) -> TapeBody:
        return read_chained_body(seq, self._read_request, self, InflationBudget(0))


def _map_whole_file(path: Path) -> mmap.mmap:
    """Map a file for reading. Raises ValueError if it is empty or no regular file."""
    if not path.is_file() or not path.stat().st_size:
        raise ValueError(f"{path}: not a tape")
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
