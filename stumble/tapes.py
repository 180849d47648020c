"""Tapes named on the command line."""

from collections.abc import Callable
from pathlib import Path

import click

from stumble.exits import Wrong
from traces.tape import Tape, read, seal

LARGE = 1 << 26


def load(path: Path, opened: Callable[[Path], Tape] = read) -> Tape:
    """The tape, with a word about what of it could not be read; exit 2 where it is none.

    `opened` may be `browse`, for whoever does not need all of it.
    """
    try:
        tape = opened(path)
    except ValueError as error:
        raise Wrong(str(error)) from None
    for damage in tape.damage:
        click.echo(
            f"warning: {path}: {damage.length} bytes at {damage.offset} could not be read "
            f"({damage.why})",
            err=True,
        )
    if tape.ending is None and not tape.trajectory.imported:
        click.echo(f"warning: {path}: the run was not closed; this is what was seen", err=True)
    return tape


def close(path: Path) -> None:
    """Seal a tape that is over; where that cannot be done it stays as it is, and one is told.

    One that is very large holds few large bodies, which sealing would take into the memory several
    times, and hardly make smaller.
    """
    if path.stat().st_size > LARGE:
        return
    try:
        seal(path)
    except OSError as error:
        click.echo(
            f"warning: {path} was not sealed: {error.strerror}; it is whole, only larger than "
            "it could be",
            err=True,
        )
