"""Files outside of an agent's copy: which folders get an overlay, and what a run changed there.

A recorded command may name any path (`rm -f /home/demo/notes.txt`). In the agent's mount namespace
every folder of the root gets an overlay whose writes go to layers of the run, so that the command
does what it did and the user's files stay. Temporary folders, sockets below /run and the user's
`--writable` paths are the real ones; /dev is one of the run's own.
"""

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

REAL_FOLDERS = (Path("/dev"), Path("/proc"), Path("/run"), Path("/sys"), Path("/tmp"))
"""Folders of the root that stay as they are: those of the kernel, scratch, and unix sockets, which
cannot be reached through an overlay."""
SCRATCH_FOLDERS = (Path("/var/tmp"),)
_OCTAL = re.compile(r"\\([0-7]{3})")


class OutsideFiles(Struct, frozen=True, kw_only=True):
    """Folders outside of a copy whose changes go to layers, and the paths that stay real."""

    layers: Path
    """A folder outside of all `folders`."""
    folders: tuple[Path, ...]
    """Outer ones first."""
    kept: tuple[Path, ...]
    devices: tuple[Path, ...] = ()
    """Paths of /dev that stay, beside those that every program may use."""
    writable: tuple[Path, ...] = ()
    """The paths of `--writable`."""

    def to_namespace_order(self) -> dict[str, object]:
        """Return the part of the ORDER for `enter_namespaces.py`."""
        folders = [(str(path), str(layer)) for path, layer in self._list_layers()]
        return {
            "outside": {"folders": folders, "kept": [str(path) for path in self.kept]},
            "devices": [str(path) for path in self.devices],
        }

    def _list_layers(self) -> Iterator[tuple[Path, Path]]:
        for number, path in enumerate(self.folders):
            yield path, self.layers / str(number)

    def find_layer_file(self, path: Path) -> Path | None:
        """Return the file of a layer that stands for `path` in the run; None without one."""
        for folder, layer in reversed(list(self._list_layers())):
            if path.is_relative_to(folder):
                found = layer / "up" / path.relative_to(folder)
                return found if found.is_file() else None
        return None

    def find_changes(self) -> Iterator[Path]:
        """Yield each file that existed outside before the run and that it changed or removed."""
        for path, layer in self._list_layers():
            upper = layer / "up"
            for folder, _, names in os.walk(upper):
                for name in names:
                    real = path / Path(folder).relative_to(upper) / name
                    if _is_changed(real, Path(folder, name)):
                        yield real


def _is_changed(real: Path, upper: Path) -> bool:
    """Return whether a file of a layer hides another content of a real one."""
    try:
        before, after = real.lstat(), upper.lstat()
    except OSError:
        return False  # a new file, or gone meanwhile
    if stat.S_ISCHR(after.st_mode) and after.st_rdev == 0:
        return True  # overlayfs.rst: removed
    return (before.st_mode, before.st_size, before.st_mtime_ns) != (
        after.st_mode,
        after.st_size,
        after.st_mtime_ns,
    )


def is_below_root_overlay(path: Path) -> bool:
    """Return whether a path is in a folder of the root that gets an overlay."""
    return not any(path.is_relative_to(each) for each in REAL_FOLDERS)


def list_layer_folders() -> list[Path]:
    """Return the temporary folders in which layers may be; a layer is not below its overlay."""
    usual = Path(tempfile.gettempdir()).resolve()
    return [
        each
        for each in dict.fromkeys((usual, Path("/tmp"), Path("/dev/shm")))  # noqa: S108
        if not is_below_root_overlay(each) and os.access(each, os.W_OK | os.X_OK)
    ]


def plan_outside_files(layers: Path, writable: tuple[Path, ...]) -> OutsideFiles:
    """Return which folders get an overlay here, with layers in `layers`."""
    scratch = (*SCRATCH_FOLDERS, Path(tempfile.gettempdir()).resolve(), *writable)
    mounts = sorted(set(read_mount_points(Path("/proc/self/mountinfo").read_text())))
    real = [path for path in _list_root_folders() if not is_below_root_overlay(path)]
    kept = [path for path in scratch if is_below_root_overlay(path) and path.exists()]
    # The home may be writable where an overlay of the folder above it is refused.
    home = Path.home()
    folders = [path for path in (*_list_root_folders(), home) if is_below_root_overlay(path)]
    inner = [
        path
        for path in mounts
        if len(path.parts) > 2
        and is_below_root_overlay(path)
        and not any(path.is_relative_to(each) for each in kept)
    ]
    unmounted = [path for path in real if path not in mounts]
    return OutsideFiles(
        layers=layers,
        writable=writable,
        folders=tuple(sorted({*folders, *inner}, key=lambda path: len(path.parts))),
        kept=tuple(sorted({*unmounted, *kept}, key=lambda path: len(path.parts))),
        devices=tuple(
            path
            for path in dict.fromkeys((*scratch, layers, home))
            if path.is_relative_to("/dev") and path.exists()
        ),
    )


def _list_root_folders() -> list[Path]:
    return [path for path in sorted(Path("/").iterdir()) if path.is_dir() and not path.is_symlink()]


def read_mount_points(mountinfo: str) -> Iterator[Path]:
    """Yield the mount points of /proc/self/mountinfo, the fifth field; see proc(5)."""
    for line in mountinfo.splitlines():
        yield Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), line.split(" ")[4]))
