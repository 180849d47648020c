"""Opening the store of commands that only read."""

import os
import shutil
from hashlib import sha256
from pathlib import Path

from stumble.errors import UsageError
from stumble.notices import print_warning
from stumble.store.index import refresh_index
from stumble.user_data.paths import cache_folder, store_root
from traces.store.trace_store import TraceStore

INDEX = "index"
"""The folder of a store that the rows are in."""


def open_indexed_store(root: Path | None = None, *, rebuild: bool = False) -> TraceStore:
    """Open the project's store, or that of `root`, with an up-to-date index.

    One that cannot be written, such as an archive, is read with an index in the user's cache.
    Prints a warning for each tape that is not indexed. Raises UsageError if there is no store: a
    new one would be the store of every folder below from then on.
    """
    root = root or store_root()
    if not root.is_dir():
        raise UsageError(
            f"no store at {root}: record a run (stumble record -- COMMAND), run stumble in the "
            "project's folder, or set STUMBLE_STORE"
        )
    store = TraceStore(root if os.access(root, os.W_OK) else _mirror_store(root))
    if rebuild:
        store.drop(*store.segments())
    for refused in refresh_index(store):
        print_warning(f"not indexed: {refused}")
    return store


def _mirror_store(root: Path) -> Path:
    """Return a folder of the user's cache with the contents of a store, and an index of its own."""
    mirror = cache_folder() / "stores" / sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    mirror.mkdir(parents=True, exist_ok=True)
    for each in root.iterdir():
        shown = mirror / each.name
        if each.name == INDEX:
            if not shown.is_dir() or shown.stat().st_mtime < each.stat().st_mtime:
                shutil.rmtree(shown, ignore_errors=True)
                shutil.copytree(each, shown, copy_function=shutil.copyfile)
        elif not shown.is_symlink():
            shown.symlink_to(each.resolve())
    return mirror
