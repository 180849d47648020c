"""Signals that arrive while DuckDB runs a query."""

from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALLED = "Query interrupted"
"""What DuckDB raises in place of the exception of a signal's handler."""


@contextmanager
def restore_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt if a signal ended a query in the block, as Python does elsewhere."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != _SIGNALLED:
            raise
        raise KeyboardInterrupt from None
