"""One exchange of a tape of any size, without reading the others into memory.

A sealed tape has a table of contents. Of any other, the frames are listed once, and their values
read where they are wanted. The file is mapped, so its bytes are the kernel's cache, not memory of
this process.
"""

import mmap
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from traces.model import Exchange, Trajectory
from traces.tape import frames
from traces.tape.decoder import TapeDecoder
from traces.tape.frames import BLOCK, TapeFrame
from traces.tape.inflation import InflationBudget, inflate
from traces.tape.payload import unpack
from traces.tape.random_access import SealedTape, read_chained_body
from traces.tape.table_of_contents import CONTENTS, DECODE_ERRORS
from traces.tape.writer import CHUNK, DONE, HEAD, REQUEST


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
        self._frames = defaultdict[int, list[TapeFrame]](list)
        self._budget = InflationBudget(self.size)
        try:
            found = frames.read_outer_frames(self._data)
            outer = tuple(each for each in found if isinstance(each, TapeFrame))
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
            self._sealed.forget_bodies()
            return self._sealed.read_exchange(self._numbers[seq])
        if seq not in self._frames:
            raise KeyError(seq)
        decoder = TapeDecoder(InflationBudget(self.size), _UnsealedBodies(self._frames))
        try:
            for frame in self._frames[seq]:
                decoder.add_frame(frame)
            (exchange,) = decoder.to_exchanges()
        except DECODE_ERRORS as error:
            raise ValueError(f"{self.path}: exchange {seq}: {error}") from None
        return exchange

    def _list_frames(self, outer: tuple[TapeFrame, ...]) -> None:
        for frame in outer:
            inner: tuple[TapeFrame, ...] = (frame,)
            if frame.kind == BLOCK:
                block = inflate(frame.payload, self._budget)
                inner = tuple(frames.parse_whole_frames(memoryview(block)))
            for each in inner:
                if each.kind in (REQUEST, HEAD, DONE):
                    self._frames[unpack(each.payload)["seq"]].append(each)
                elif each.kind == CHUNK:
                    self._frames[unpack(each.payload)[0]].append(each)


class _UnsealedBodies(dict[int, bytes]):
    """Bodies by seq; those that are not read yet are read from the frames."""

    def __init__(self, by_seq: Mapping[int, list[TapeFrame]]) -> None:
        super().__init__()
        self._by_seq = by_seq

    def __missing__(self, seq: int) -> bytes:
        budget = InflationBudget(0)
        return read_chained_body(seq, lambda each: self._by_seq[each][0], self, budget)


def _map_whole_file(path: Path) -> mmap.mmap:
    """Map a file for reading. Raises ValueError if it is empty or no regular file."""
    if not path.is_file() or not path.stat().st_size:
        raise ValueError(f"{path}: not a tape")
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
