"""Opening the store of commands that only read."""

from pathlib import Path

from stumble.errors import UsageError
from stumble.notices import print_warning
from stumble.store.index import refresh_index
from stumble.user_data.paths import store_root
from traces.store.trace_store import TraceStore


def open_indexed_store(root: Path | None = None, *, rebuild: bool = False) -> TraceStore:
    """Open the project's store, or that of `root`, with an up-to-date index.

    Prints a warning for each tape that is not indexed. Raises UsageError if there is no store: a
    new one would be the store of every folder below from then on.
    """
    root = root or store_root()
    if not root.is_dir():
        raise UsageError(
            f"no store at {root}: record a run (stumble record -- COMMAND), run stumble in the "
            "project's folder, or set STUMBLE_STORE"
        )
    store = TraceStore(root)
    if rebuild:
        store.drop(*store.segments())
    for refused in refresh_index(store):
        print_warning(f"not indexed: {refused}")
    return store
