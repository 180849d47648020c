"""Errors of a store that cannot be written."""

from collections.abc import Iterator
from contextlib import contextmanager

from stumble.errors import HarnessError
from traces.store.store_dir import StoreDirectory


def unwritable_store(store: StoreDirectory, error: Exception) -> HarnessError:
    """Return the error of a store that cannot be written, with a remedy."""
    why = getattr(error, "strerror", None) or error
    return HarnessError(
        f"{store.root} could not be written: {why}. No tape is lost; make room there, and "
        "the next command writes the rows that are missing"
    )


@contextmanager
def report_write_errors(store: StoreDirectory) -> Iterator[None]:
    """Raise HarnessError, with a remedy, if the store cannot be written."""
    import duckdb  # not before: a recording reports such errors too, and needs no database

    try:
        yield
    except (OSError, duckdb.Error) as error:
        raise unwritable_store(store, error) from error
