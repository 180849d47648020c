"""Scrubbing: rewrite a tape through the redactor, for values not known as secrets when recorded."""

import os
from collections.abc import Iterable
from copy import replace
from pathlib import Path

from msgspec import Struct

from traces.model import Exchange
from traces.redaction.fingerprints import KnownSecrets
from traces.tape.origin_mark import is_origin_mark
from traces.tape.reader import Tape, read_tape
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter


class ScrubResult(Struct, frozen=True, kw_only=True):
    """The result of scrubbing one tape."""

    exchanges: int
    changed: int
    """Number of exchanges whose content changed."""
    lost: int
    """Bytes of the old tape that could not be read and are missing from the new one."""


def scrub_tape(
    tape: Path,
    new: Path,
    part: Path,
    *,
    secrets: Iterable[str] | KnownSecrets = (),
    over: bool = False,
) -> ScrubResult:
    """Write the tape to `new` without its secrets, completely or not at all.

    `part` is a new path on the same file system, which the caller removes. Raises FileExistsError
    if `new` exists and `over` is False; ValueError if `tape` is not a tape.
    """
    old = read_tape(tape)
    _write_scrubbed_tape(old, part, secrets)
    seal_tape(part)
    rewritten = read_tape(part)
    if over:
        part.replace(new)
    else:
        os.link(part, new)
    changed = sum(
        _clear_redacted_flag(a) != _clear_redacted_flag(b)
        for a, b in zip(old.exchanges, rewritten.exchanges, strict=True)
    )
    return ScrubResult(exchanges=len(rewritten.exchanges), changed=changed, lost=old.dropped)


def _clear_redacted_flag(exchange: Exchange) -> Exchange:
    return replace(exchange, redacted=False)


def _write_scrubbed_tape(old: Tape, path: Path, secrets: Iterable[str] | KnownSecrets) -> None:
    key = secrets.key if isinstance(secrets, KnownSecrets) else b""
    is_own = is_origin_mark(old.origin, old.trajectory, key)
    with TapeWriter(
        path,
        old.trajectory,
        secrets=secrets,
        recorded=old.redactions,
        origin_key=key if is_own else None,
    ) as writer:
        for exchange in old.exchanges:
            _write_scrubbed_exchange(writer, exchange)
        for injection in old.injections:
            writer.write_injection(injection)
        if old.input is not None:
            writer.write_input(old.input)
        for mark in old.marks:
            writer.write_mark(mark)
        if old.ending is not None:
            writer.write_ending(old.ending)


def _write_scrubbed_exchange(writer: TapeWriter, exchange: Exchange) -> None:
    answer = exchange.response
    is_over = exchange.error is not None or (answer is not None and answer.ended is not None)
    if is_over:
        writer.write_exchange(exchange)
        return
    # It was still under way and stays so; closing the tape writes pending chunks.
    writer.request(exchange)
    if answer is not None:
        writer.head(exchange)
        for chunk in answer.chunks:
            writer.chunk(exchange, chunk)
