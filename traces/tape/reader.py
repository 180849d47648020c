"""Read a tape: its contents, and the damage."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard

from msgspec import Struct

from traces.model import AgentInput, Exchange, Injection, Request, RunEnding, RunEvent, Trajectory
from traces.redaction.fingerprints import RedactionRecord
from traces.tape import frames
from traces.tape.decoder import TapeDecoder
from traces.tape.frames import TapeDamage, TapeFrame
from traces.tape.inflation import InflationBudget
from traces.tape.random_access import LazyExchanges, RequestSpans, SealedTape
from traces.tape.table_of_contents import CONTENTS, DECODE_ERRORS


class Tape(Struct, frozen=True, kw_only=True):
    """The contents of a tape: exchanges in order of `seq`, and its unreadable parts."""

    path: Path
    trajectory: Trajectory
    exchanges: Sequence[Exchange]
    injections: tuple[Injection, ...] = ()
    marks: tuple[RunEvent, ...] = ()
    ending: RunEnding | None = None
    """None for a run that is still going on or was killed."""
    spans: Mapping[int, tuple[int, int]]
    """seq to (offset, length) in the file of the frame, or the block, with its request."""
    damage: tuple[TapeDamage, ...] = ()
    verbatim: bool = False
    """True if secrets were written unredacted."""
    origin: bytes | None = None
    """The mark of who recorded it (`traces.tape.origin_mark`); None on tapes of others' making."""
    redactions: tuple[RedactionRecord, ...] = ()
    """Records of the secrets that placeholders replace, as hashes; empty on older tapes."""
    input: AgentInput | None = None
    """The agent's standard input; None if it was none that is recorded, such as a terminal."""
    completed: tuple[int, ...] = ()
    """Exchanges without a `done` frame whose response is complete by its content-length."""

    @property
    def cut_at(self) -> int | None:
        """The exchange at which a recording was cut; None for one with an ending, or an import.

        It is the first with an incomplete response, or the one that would have come next.
        """
        if self.ending is not None or self.trajectory.is_imported:
            return None
        for exchange in self.exchanges:
            response = exchange.response
            if exchange.error is None and (response is None or response.ended is None):
                return exchange.seq
        return self.exchanges[-1].seq + 1 if self.exchanges else 0

    @property
    def dropped(self) -> int:
        """Number of bytes that could not be read."""
        return sum({damage.offset: damage.length for damage in self.damage}.values())


def read_tape(path: Path, data: bytes | None = None) -> Tape:
    """Read the tape at `path`, or these bytes of it, as far as possible.

    Raises ValueError if it is not a tape, is of a newer format, or lost its first frame.
    """
    try:
        with pause_garbage_collection():
            return _decode_tape(path, _read_tape_bytes(path) if data is None else data)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_tape_lazily(path: Path) -> Tape:
    """Read the tape at `path`, each exchange on first access.

    This needs a tape that ends with its contents and has no damage; any other is read in full.
    Reading an exchange that differs from the contents raises ValueError. Raises ValueError as
    `read_tape` does.
    """
    try:
        with pause_garbage_collection():
            data = _read_tape_bytes(path)
            outer = tuple(frames.read_outer_frames(data))
            if not _has_table_of_contents(outer):
                return _decode_tape(path, data)
            return _to_lazy_tape(path, SealedTape(path, outer, InflationBudget(len(data))))
    except DECODE_ERRORS as error:
        raise ValueError(f"{path}: {error}") from None


def _read_tape_bytes(path: Path) -> bytes:
    """Read a file; ValueError if it is not a regular file, which may have no end."""
    if not path.is_file():
        raise ValueError("not a tape: it is no file")
    return path.read_bytes()


def _has_table_of_contents(
    found: tuple[TapeFrame | TapeDamage, ...],
) -> TypeGuard[tuple[TapeFrame, ...]]:
    last = found[-1] if found else None
    if not isinstance(last, TapeFrame) or last.kind != CONTENTS:
        return False
    return all(isinstance(each, TapeFrame) for each in found)


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector: a tape has no cycles, and searching for them is slow."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_tape_request(path: Path, seq: int, offset: int, length: int) -> Request:
    """Read the request of exchange `seq`, whose frame or block the index places at `offset`.

    Reads no further than `offset + length`, or all of a tape that was sealed since. Raises
    ValueError if the tape does not hold the exchange.
    """
    data = _read_tape_bytes(path)
    for stop in (offset + length, len(data)):
        decoder, _ = _decode_frames(data[:stop])
        for exchange in decoder.to_exchanges():
            if exchange.seq == seq:
                return exchange.request
    raise ValueError(f"{path}: no exchange {seq} can be read")


def _to_lazy_tape(path: Path, book: SealedTape) -> Tape:
    rest = book.decode_rest()
    if rest.trajectory_with_rules is None:
        raise ValueError("the tape has lost its first frame")
    return Tape(
        path=path,
        trajectory=rest.trajectory_with_rules,
        exchanges=LazyExchanges(book, range(len(book.contents.seqs))),
        injections=tuple(rest.injections),
        marks=tuple(rest.marks),
        ending=rest.ending,
        spans=RequestSpans(book),
        verbatim=rest.verbatim,
        origin=rest.origin,
        redactions=tuple(rest.redactions),
        input=rest.input,
    )


def _decode_frames(data: bytes) -> tuple[TapeDecoder, list[TapeDamage]]:
    budget = InflationBudget(len(data))
    decoder, damage = TapeDecoder(budget), list[TapeDamage]()
    for each in frames.read_frames(data, budget):
        if isinstance(each, TapeDamage):
            damage.append(each)
            continue
        try:
            decoder.add_frame(each)
        except DECODE_ERRORS as error:
            damage.append(TapeDamage(each.offset, each.length, f"{type(error).__name__}: {error}"))
    return decoder, damage


def _decode_tape(path: Path, data: bytes) -> Tape:
    decoder, damage = _decode_frames(data)
    if decoder.trajectory_with_rules is None:
        raise ValueError("the tape has lost its first frame")
    return Tape(
        path=path,
        trajectory=decoder.trajectory_with_rules,
        exchanges=decoder.to_exchanges(),
        injections=tuple(decoder.injections),
        marks=tuple(decoder.marks),
        ending=decoder.ending,
        spans=decoder.spans,
        damage=tuple(damage),
        verbatim=decoder.verbatim,
        origin=decoder.origin,
        redactions=tuple(decoder.redactions),
        input=decoder.input,
        completed=decoder.find_complete_by_length(),
    )
