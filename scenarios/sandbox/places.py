"""Where the engine finds a folder that we see, since in a replay ours may show a copy of it.

The engine mounts what its own mount namespace has at a path. The kernel tells for each
namespace which part of which file system stands where.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker.types import Mount


@dataclass(frozen=True, slots=True)
class Placed:
    """One line of /proc/PID/mountinfo: a part of a file system, and where it stands."""

    device: str
    root: PurePosixPath
    point: PurePosixPath


def outside(path: Path) -> Path:
    """The path at which the engine finds what we find at `path`; FileNotFoundError where none."""
    path, theirs = path.resolve(), _engines()
    if theirs is None:
        return path
    mount = _under(_mounts("self"), path)
    inner = mount.root / path.relative_to(mount.point)
    for each in theirs:
        if each.device == mount.device and inner.is_relative_to(each.root):
            found = Path(each.point / inner.relative_to(each.root))
            if _under(theirs, found) == each:  # nothing else is mounted over it
                return found
    raise FileNotFoundError(f"{path} is mounted where the docker engine does not see it")


def _under(mounts: tuple[Placed, ...], path: PurePath) -> Placed:
    """The mount in which a path lies: the deepest, and of several at one point the last."""
    over = [each for each in mounts if path.is_relative_to(each.point)]
    deepest = max(len(each.point.parts) for each in over)
    return [each for each in over if len(each.point.parts) == deepest][-1]


def _engines() -> tuple[Placed, ...] | None:
    """What is mounted in the first namespace that is not ours; None where we know no other."""
    ours = _namespace("self")
    for pid in ("1", *_ancestors()):
        other = _namespace(pid)
        if other is not None and other != ours:
            return _mounts(pid)
    return None


def _namespace(pid: str) -> int | None:
    try:
        return Path(f"/proc/{pid}/ns/mnt").stat().st_ino
    except OSError:  # it is somebody else's, or has ended
        return None


def _ancestors() -> Iterator[str]:
    pid = str(os.getppid())
    while pid not in ("0", "1"):
        yield pid
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = stat.rpartition(")")[2].split()[1]


def _mounts(pid: str) -> tuple[Placed, ...]:
    lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    return tuple(_placed(*line.split()[2:5]) for line in lines)


def _placed(device: str, root: str, point: str) -> Placed:
    return Placed(device, PurePosixPath(_plain(root)), PurePosixPath(_plain(point)))


def _plain(text: str) -> str:
    """Without the octal escapes in which the kernel writes spaces."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def bind(source: Path, target: str, *, writable: bool = False) -> "Mount":
    """What tells the engine to show a file or folder of ours."""
    from docker.types import Mount

    found = str(outside(source))
    return Mount(target, found, type="bind", read_only=not writable)
