"""Errors of a store that cannot be written."""

from stumble.cli.exit_codes import HarnessError
from traces.store.store_dir import StoreDirectory


def unwritable_store(store: StoreDirectory, error: Exception) -> HarnessError:
    """Return the error of a store that cannot be written, with a remedy."""
    why = getattr(error, "strerror", None) or error
    return HarnessError(
        f"{store.root} could not be written: {why}. No tape is lost; make room there, and "
        "the next command writes the rows that are missing"
    )
