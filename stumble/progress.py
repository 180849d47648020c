"""Long work says how far it is, on a line of its own that goes when it is done."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

AFTER, EVERY = 1.0, 0.2
"""Seconds: what is over sooner says nothing, what goes on says so this often."""


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function that is told how much of how much is done; a terminal shows it."""
    terminal, shown = sys.stderr.isatty(), False
    due = time.monotonic() + AFTER

    def tell(done: int, total: int) -> None:
        nonlocal due, shown
        if terminal and time.monotonic() >= due:
            due, shown = time.monotonic() + EVERY, True
            click.echo(f"\r{what}: {done} of {total}", nl=False, err=True)

    try:
        yield tell
    finally:
        if shown:
            click.echo("\r\x1b[K", nl=False, err=True)
