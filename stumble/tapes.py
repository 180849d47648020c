"""Tapes named on the command line."""

from pathlib import Path

import click

from stumble.exits import Wrong
from traces.tape import Tape, read


def load(path: Path) -> Tape:
    """The tape, with a word about what of it could not be read; exit 2 where it is none."""
    try:
        tape = read(path)
    except ValueError as error:
        raise Wrong(str(error)) from None
    for damage in tape.damage:
        click.echo(
            f"warning: {path}: {damage.length} bytes at {damage.offset} could not be read "
            f"({damage.why})",
            err=True,
        )
    if tape.ending is None:
        click.echo(f"warning: {path}: the run was not closed; this is what was seen", err=True)
    return tape
