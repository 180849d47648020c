"""After each test of whole commands: what `stumble scan` finds in the stores is a fault."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from stumble.store.secret_scan import scan_files
from tests.support.tiers import TIER

DEPTHS = range(4)
"""Where a store lies below a folder; an installed environment goes on deeper, and has none."""
SCANNED: set[tuple[Path, int, int]] = set()
"""Files of earlier tests, with size and time of change."""


@pytest.fixture(autouse=True)
def no_secret_is_left(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Scan the stores of the test, and those that it shares with others."""
    yield
    if TIER == "test" or request.node.get_closest_marker("keeps_secrets"):
        return
    folders = tmp_path_factory.getbasetemp().iterdir()
    shared = [each for each in folders if not each.name.startswith("test_") and each.is_dir()]
    files = [file for folder in (tmp_path, *shared) for file in iter_new_store_files(folder)]
    assert [(str(each.path), each.found) for each in scan_files(files) if each.found] == []


def iter_new_store_files(folder: Path) -> Iterator[Path]:
    """Yield the files of each store below a folder that no earlier test left as they are."""
    for ignore in chain.from_iterable(folder.glob("*/" * depth + ".gitignore") for depth in DEPTHS):
        if (ignore.parent / "tapes").is_dir():
            for file in ignore.parent.rglob("*"):
                if file.is_file() and not file.is_symlink():
                    state = file.stat()
                    known = (file, state.st_size, state.st_mtime_ns)
                    if known not in SCANNED:
                        SCANNED.add(known)
                        yield file
