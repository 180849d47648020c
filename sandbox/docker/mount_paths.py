"""Find the engine's path of a folder, since during a replay this process may see a copy there.

The engine resolves mounts in its own mount namespace. The kernel reports for each namespace which
part of which file system is mounted where.
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
class MountEntry:
    """One line of /proc/PID/mountinfo: a part of a file system, and its mount point."""

    device: str
    root: PurePosixPath
    point: PurePosixPath


def find_engine_path(path: Path) -> Path:
    """Return the engine's path of the local `path`. Raises FileNotFoundError if it has none."""
    path, engine_mounts = path.resolve(), _find_engine_mounts()
    if engine_mounts is None:
        return path
    mount = _find_mount_of(_read_mounts("self"), path)
    path_on_device = mount.root / path.relative_to(mount.point)
    for each in engine_mounts:
        if each.device == mount.device and path_on_device.is_relative_to(each.root):
            candidate = Path(each.point / path_on_device.relative_to(each.root))
            if _find_mount_of(engine_mounts, candidate) == each:  # no other mount covers it
                return candidate
    raise FileNotFoundError(f"{path} is mounted where the docker engine does not see it")


def _find_mount_of(mounts: tuple[MountEntry, ...], path: PurePath) -> MountEntry:
    """Return the mount that contains a path: the deepest, and among equals the last."""
    covering = [each for each in mounts if path.is_relative_to(each.point)]
    deepest = max(len(each.point.parts) for each in covering)
    return [each for each in covering if len(each.point.parts) == deepest][-1]


def _find_engine_mounts() -> tuple[MountEntry, ...] | None:
    """Return the mounts of PID 1 or the first ancestor in another mount namespace, else None."""
    own_namespace = _read_mount_namespace("self")
    for pid in ("1", *_list_ancestor_pids()):
        other = _read_mount_namespace(pid)
        if other is not None and other != own_namespace:
            return _read_mounts(pid)
    return None


def _read_mount_namespace(pid: str) -> int | None:
    try:
        return Path(f"/proc/{pid}/ns/mnt").stat().st_ino
    except OSError:  # another user's, or ended
        return None


def _list_ancestor_pids() -> Iterator[str]:
    pid = str(os.getppid())
    while pid not in ("0", "1"):
        yield pid
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = stat.rpartition(")")[2].split()[1]


def _read_mounts(pid: str) -> tuple[MountEntry, ...]:
    lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    return tuple(_parse_mount_entry(*line.split()[2:5]) for line in lines)


def _parse_mount_entry(device: str, root: str, point: str) -> MountEntry:
    return MountEntry(
        device,
        PurePosixPath(_decode_octal_escapes(root)),
        PurePosixPath(_decode_octal_escapes(point)),
    )


def _decode_octal_escapes(text: str) -> str:
    """Decode the octal escapes that the kernel writes for spaces."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def make_bind_mount(source: Path, target: str, *, writable: bool = False) -> "Mount":
    """Return a bind mount of a local file or folder for the engine."""
    from docker.types import Mount

    engine_path = str(find_engine_path(source))
    return Mount(target, engine_path, type="bind", read_only=not writable)
