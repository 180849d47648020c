"""A tape written once more through the redactor, for what was not known to be a secret then."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from traces.model import Exchange
from traces.tape import Tape, Writer, read, seal


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbed:
    """What became of a tape."""

    exchanges: int
    changed: int
    """How many exchanges say something else than before."""
    lost: int
    """Bytes of the old tape that could not be read and are not in the new one."""


def scrub(tape: Path, new: Path, *, secrets: Iterable[str] = (), over: bool = False) -> Scrubbed:
    """Write the tape to `new` without its secrets: whole, or not at all.

    FileExistsError if `new` is there and `over` is False; ValueError where `tape` is no tape.
    """
    old = read(tape)
    with TemporaryDirectory(prefix=".scrub-", dir=new.parent) as folder:
        path = Path(folder) / new.name
        _write(old, path, secrets)
        seal(path)
        fresh = read(path)
        if over:
            path.replace(new)
        else:
            os.link(path, new)
    changed = sum(_said(a) != _said(b) for a, b in zip(old.exchanges, fresh.exchanges, strict=True))
    return Scrubbed(exchanges=len(fresh.exchanges), changed=changed, lost=old.dropped)


def _said(exchange: Exchange) -> Exchange:
    return replace(exchange, redacted=False)


def _write(old: Tape, path: Path, secrets: Iterable[str]) -> None:
    with Writer(path, old.trajectory, secrets=secrets) as writer:
        for exchange in old.exchanges:
            _exchange(writer, exchange)
        for injection in old.injections:
            writer.injection(injection)
        for mark in old.marks:
            writer.mark(mark)
        if old.ending is not None:
            writer.ending(old.ending)


def _exchange(writer: Writer, exchange: Exchange) -> None:
    answer = exchange.response
    over = exchange.error is not None or (answer is not None and answer.ended is not None)
    if over:
        writer.exchange(exchange)
        return
    # It was still under way, and so it stays; what waits is written when the tape is closed.
    writer.request(exchange)
    if answer is not None:
        writer.head(exchange)
        for chunk in answer.chunks:
            writer.chunk(exchange, chunk)
