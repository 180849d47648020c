"""A progress line on a terminal, for long work; it is erased at the end."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHOW_AFTER, SHOW_EVERY = 1.0, 0.2
"""Seconds before the first line, and between updates."""


@contextmanager
def show_terminal_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function (done, total) that updates the progress line, if stderr is a terminal."""
    terminal, shown = sys.stderr.isatty(), False
    due = time.monotonic() + SHOW_AFTER

    def tell(done: int, total: int) -> None:
        nonlocal due, shown
        if terminal and time.monotonic() >= due:
            due, shown = time.monotonic() + SHOW_EVERY, True
            print(f"\r{what}: {done} of {total}", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
