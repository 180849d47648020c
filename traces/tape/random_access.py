"""Exchanges of a sealed tape, each read on first access."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import overload

from traces.model import Exchange
from traces.tape import frames, table_of_contents
from traces.tape.decoder import TapeBody, TapeDecoder, decode_tape_body, read_parent_seq
from traces.tape.frames import BLOCK, TapeFrame
from traces.tape.inflation import InflationBudget, inflate, read_inflated_size
from traces.tape.payload import unpack
from traces.tape.table_of_contents import (
    CONTENTS,
    DECODE_ERRORS,
    TableOfContents,
    hash_request,
    is_complete_exchange,
)

_OPEN_BLOCKS = 8
"""Decompressed blocks to cache: readers proceed in order, at a few places in parallel."""


class SealedTape:
    """The bytes of a sealed tape and its table of contents."""

    def __init__(self, path: Path, outer: tuple[TapeFrame, ...], budget: InflationBudget) -> None:
        """Raise one of `DECODE_ERRORS` if the last frame is not a valid table of contents, or a
        block is too large.
        """
        *self._outer, last = outer
        if last.kind != CONTENTS:
            raise ValueError("the tape does not end with contents")
        self.path = path
        self.contents: TableOfContents = table_of_contents.read_table_of_contents(last.payload)
        self._starts = tuple(accumulate(map(_measure_inflated_frame, self._outer), initial=0))
        self._opened = lru_cache(_OPEN_BLOCKS)(self._open_block)
        self._budget = budget
        self._bodies = _BodyCache(self)
        self._numbers = {seq: number for number, seq in enumerate(self.contents.seqs)}

    def read_exchange(self, number: int) -> Exchange:
        """Read the exchange by its number in the contents; ValueError if it differs from them."""
        try:
            decoder = TapeDecoder(self._budget, self._bodies)
            for frame in self._read_exchange_frames(number):
                decoder.add_frame(frame)
            (exchange,) = decoder.to_exchanges()
        except DECODE_ERRORS as error:
            raise self._to_misfit_error(number) from error
        contents = self.contents
        fits = (
            exchange.seq == contents.seqs[number]
            and hash_request(exchange.request) == contents.keys[number]
        )
        if not fits or is_complete_exchange(exchange) == (exchange.seq in contents.open):
            raise self._to_misfit_error(number)
        return exchange

    def decode_rest(self) -> TapeDecoder:
        """Decode the frames that belong to no exchange."""
        decoder = TapeDecoder(self._budget)
        for frame in self.find_loose_frames():
            decoder.add_frame(frame)
        return decoder

    def find_loose_frames(self) -> Iterator[TapeFrame]:
        """Yield the frames that belong to no exchange."""
        for start, stop in self.contents.rest:
            yield from self._read_frames_between(start, stop)

    def find_request_span(self, seq: int) -> tuple[int, int]:
        """Return offset and length in the file of the frame or block with the request.

        Raises KeyError for an unknown seq.
        """
        frame = next(self._read_exchange_frames(self._numbers[seq]))
        return frame.offset, frame.length

    def _to_misfit_error(self, number: int) -> ValueError:
        return ValueError(
            f"{self.path}: its contents do not fit exchange {self.contents.seqs[number]}"
        )

    def read_body(self, seq: int) -> TapeBody:
        """Read a body that is the parent of others, after the chain of its parents."""
        return read_chained_body(
            seq,
            lambda each: next(self._read_exchange_frames(self._numbers[each])),
            self._bodies,
            self._budget,
        )

    def _read_exchange_frames(self, number: int) -> Iterator[TapeFrame]:
        """Yield the frames of one exchange."""
        contents = self.contents
        for run in range(contents.firsts[number], contents.firsts[number + 1]):
            yield from self._read_frames_between(contents.starts[run], contents.stops[run])

    def _read_frames_between(self, start: int, stop: int) -> Iterator[TapeFrame]:
        """Yield the frames between two offsets; ValueError if no frame begins or ends there."""
        if not 0 <= start < stop <= self._starts[-1]:
            raise ValueError("nothing stands there")
        while start < stop:
            number = bisect_right(self._starts, start) - 1
            holder, at = self._outer[number], start - self._starts[number]
            piece = self._opened(number)[at : at + stop - start]
            for frame in frames.parse_whole_frames(piece):
                yield TapeFrame(frame.kind, frame.payload, holder.offset, holder.length)
            start += len(piece)

    def _open_block(self, number: int) -> memoryview:
        frame = self._outer[number]
        if frame.kind == BLOCK:
            return memoryview(inflate(frame.payload))
        return memoryview(frames.encode_frame(frame.kind, bytes(frame.payload)))


def read_chained_body(
    seq: int,
    find_request: Callable[[int], TapeFrame],
    bodies: dict[int, TapeBody],
    budget: InflationBudget,
) -> TapeBody:
    """Read the body of a request after the chain of its parents, all kept in `bodies`.

    Raises ValueError if the chain has no end.
    """
    pending, seen, current = list[tuple[int, object]](), set[int](), seq
    while current not in bodies:
        body = unpack(find_request(current).payload)["body"]
        pending.append((current, body))
        parent = read_parent_seq(body)
        if parent is None:
            break
        if current in seen:
            raise ValueError("its bodies are said by way of one another")
        seen.add(current)
        current = parent
    for current, body in reversed(pending):
        bodies[current] = decode_tape_body(body, bodies, budget)
    return bodies[seq]


class _BodyCache(dict[int, TapeBody]):
    """The bodies read so far, by seq; missing ones are read from the sealed tape."""

    def __init__(self, book: SealedTape) -> None:
        super().__init__()
        self._book = book

    def __missing__(self, seq: int) -> TapeBody:
        return self._book.read_body(seq)


def _measure_inflated_frame(frame: TapeFrame) -> int:
    """Return the size of a frame, or of the frames in a block."""
    if frame.kind == BLOCK:
        return read_inflated_size(frame.payload)
    return frame.length


class LazyExchanges(Sequence[Exchange]):
    """Exchanges in request order; reading one raises ValueError if it differs from the contents."""

    def __init__(self, book: SealedTape, numbers: Sequence[int]) -> None:
        self._book, self._numbers = book, numbers
        self._read: dict[int, Exchange] = {}

    def read_keys(self) -> Iterator[bytes]:
        """Yield the request key of each exchange."""
        keys = self._book.contents.keys
        return (keys[number] for number in self._numbers)

    def find_complete(self) -> "LazyExchanges":
        """Return the complete ones; the others are read, to verify that they are incomplete."""
        contents = self._book.contents
        incomplete = (
            {n for n in self._numbers if contents.seqs[n] in contents.open} if contents.open else ()
        )
        for number in incomplete:
            self._book.read_exchange(number)
        return (
            LazyExchanges(self._book, [n for n in self._numbers if n not in incomplete])
            if incomplete
            else self
        )

    def find_incomplete(self) -> "LazyExchanges":
        """Return the incomplete ones."""
        contents = self._book.contents
        return LazyExchanges(
            self._book, [n for n in self._numbers if contents.seqs[n] in contents.open]
        )

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Exchange: ...
    @overload
    def __getitem__(self, place: slice) -> "LazyExchanges": ...
    def __getitem__(self, place: int | slice) -> "Exchange | LazyExchanges":
        if isinstance(place, slice):
            return LazyExchanges(self._book, self._numbers[place])
        number = self._numbers[place]
        if (exchange := self._read.get(number)) is None:
            exchange = self._read[number] = self._book.read_exchange(number)
        return exchange


class RequestSpans(Mapping[int, tuple[int, int]]):
    """Offset and length in the file of the request of each exchange, by seq."""

    def __init__(self, book: SealedTape) -> None:
        self._book = book

    def __getitem__(self, seq: int) -> tuple[int, int]:
        return self._book.find_request_span(seq)

    def __iter__(self) -> Iterator[int]:
        return iter(self._book.contents.seqs)

    def __len__(self) -> int:
        return len(self._book.contents.seqs)
