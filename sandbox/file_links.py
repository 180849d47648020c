"""The symbolic links on the way to a file, for file systems that are built of single paths."""

from collections.abc import Iterable, Iterator
from pathlib import Path


def follow_links(path: Path) -> Iterator[Path]:
    """Yield the links on the way to an existing path and the path itself, each without links above.

    /bin/sh on Debian: /bin, /usr/bin/sh, /usr/bin/dash. Nothing if it does not exist.
    """
    if not path.exists():
        return
    at = Path(path.anchor)
    for number, part in enumerate(path.parts[1:], 2):
        at /= part
        if at.is_symlink():
            yield at
            target = (at.parent / at.readlink()).joinpath(*path.parts[number:])
            yield from follow_links(_without_dots(target))
            return
    yield at


def list_outermost_paths(named: Iterable[Path]) -> tuple[Path, ...]:
    """Return paths with the links on the way to them, but none that lies in another one."""
    paths = dict.fromkeys(each for path in named for each in follow_links(path))
    folders = {path for path in paths if path.is_dir() and not path.is_symlink()}
    return tuple(path for path in paths if folders.isdisjoint(path.parents))


def _without_dots(path: Path) -> Path:
    """Return a path without `..`; each one is preceded by a folder that is no link."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1] or parts
        else:
            parts.append(part)
    return Path(*parts)
