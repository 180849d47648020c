"""Mounts that keep an agent's writes outside of its folder from the user's own files.

`enter_namespaces.py` calls this inside the new mount namespace. Standard library only, with few
imports: every run waits for this.
"""

import errno
import os
from collections.abc import Iterable

from recorder.agent.enter_namespaces import mount_overlay, remount_read_only
from sandbox.kernel import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_REC,
    mount_path,
    set_read_only,
)

SHARED_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""What of /dev an agent may share with other programs: none of them keeps anything."""
DEVICE_LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}


def divert_outside_writes(
    folders: list[tuple[str, str]], kept: list[str], required: bool = False
) -> None:
    """Mount an overlay at each folder, whose writes go to its layer, and `kept` as it is.

    `folders` has pairs of a folder and its layer, outer ones first. A folder that cannot be the
    lower layer of an overlay becomes read-only, and so does `/` itself. Raises OSError if a mount
    fails, or if an overlay is `required` and cannot be mounted.
    """
    originals = open_originals((*(path for path, _ in folders), *kept))
    for path, layer in folders:
        if path not in originals or not os.path.lexists(path):  # noqa: PTH110
            continue
        is_folder = os.path.isdir(originals[path])  # noqa: PTH112
        if not is_folder or not mount_overlay(originals[path], path, layer):
            if required:
                raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), layer)
            mount_path(originals[path], path, None, MS_BIND | MS_REC)
            set_tree_read_only(path)
    for path in kept:
        if path in originals:
            mount_path(originals[path], path, None, MS_BIND | MS_REC)
    remount_read_only("/")


def replace_devices(kept: list[str]) -> None:
    """Cover /dev by one of the agent's own: what every program may use, and `kept` paths of it.

    Real shared memory, disks, consoles, kernel interfaces and other people's terminals are not
    there; `/dev/tty` is the agent's own terminal, if it has one.
    """
    originals = open_originals((*(f"/dev/{name}" for name in SHARED_DEVICES), *kept))
    mount_path("none", "/dev", "tmpfs", MS_NOSUID, "size=64k,mode=755")
    os.mkdir("/dev/shm")  # noqa: PTH102, S108
    mount_path("none", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")  # noqa: S108
    os.mkdir("/dev/pts")  # noqa: PTH102
    mount_path("none", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=666")
    show_originals(originals)
    for name, target in DEVICE_LINKS.items():
        os.symlink(target, f"/dev/{name}")  # noqa: PTH211


def replace_scratch(folders: list[tuple[str, str]], kept: list[str]) -> None:
    """Cover folders for temporary files by empty ones; `kept` paths of them stay.

    `folders` has pairs of a folder and the new one to make for it, outer ones first.
    """
    originals = open_originals(kept)
    for _, source in folders:
        os.makedirs(source)  # noqa: PTH103
        os.chmod(source, 0o1777)  # noqa: PTH101
    sources = open_originals(source for _, source in folders)
    for path, source in folders:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
        mount_path(sources[source], path, None, MS_BIND)
    show_originals(originals)


def show_originals(originals: dict[str, str]) -> None:
    """Mount what `open_originals` returned at its paths, which are made if they are not there."""
    for path, original in originals.items():
        if os.path.isdir(original):  # noqa: PTH112
            os.makedirs(path, exist_ok=True)  # noqa: PTH103
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
        mount_path(original, path, None, MS_BIND | MS_REC)


def open_originals(paths: Iterable[str]) -> dict[str, str]:
    """Open paths before they are covered; return what each can be mounted from."""
    originals: dict[str, str] = {}
    for path in paths:
        try:
            originals[path] = f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_CLOEXEC)}"
        except OSError:
            continue  # unmounted meanwhile, or the agent may not open it either
    return originals


def set_tree_read_only(path: str) -> None:
    """Make a mount and all below it read-only; before Linux 5.12 only the mount itself."""
    try:
        set_read_only(path, deep=True)
    except OSError:
        remount_read_only(path)
