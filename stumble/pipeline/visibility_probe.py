"""Searches for a run's files from inside of a sandbox: `python -I -S -c SOURCE < QUESTION`.

QUESTION is JSON: `paths` to try, and the `token` of a witness, a process of the driver. Prints a
JSON list of what was found. Standard library only: no package is in there.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path


def can_read(path: Path) -> bool:
    """Return whether this process can read a file's first byte, or a folder's first name."""
    try:
        if path.is_dir():
            return any(path.iterdir())
        with path.open("rb", buffering=0) as file:
            return bool(file.read(1))
    except OSError:
        return False


def list_folder(path: str) -> list[str]:
    """Return the names in a folder of /proc; [] if it cannot be listed."""
    try:
        return [each.name for each in Path(path).iterdir()]
    except OSError:
        return []


def holds_token(path: Path, token: bytes) -> bool:
    """Return whether a regular file can be read and holds the token."""
    try:
        return path.is_file() and token in path.read_bytes()[: 1 << 16]
    except OSError:
        return False


def search_run(paths: list[str], token: bytes) -> Iterator[str]:
    """Yield what is found: files by all ways to them, descriptors, and words of processes."""
    own = str(os.getpid())
    processes = [name for name in list_folder("/proc") if name.isdigit() and name != own]
    ways = ["", *(f"/proc/{pid}/{link}" for pid in processes for link in ("root", "cwd"))]
    yield from (way + path for way in ways for path in paths if can_read(Path(way + path)))
    for pid in processes:
        files = [f"/proc/{pid}/{name}" for name in ("environ", "cmdline")]
        files += [f"/proc/{pid}/fd/{name}" for name in list_folder(f"/proc/{pid}/fd")]
        yield from (path for path in files if holds_token(Path(path), token))
    for number in list_folder("/proc/self/fd"):
        if int(number) > 2 and Path("/proc/self/fd", number).exists():
            yield f"descriptor {number}"


if __name__ == "__main__":
    question = json.load(sys.stdin)
    print(json.dumps(list(search_run(question["paths"], question["token"].encode()))))
