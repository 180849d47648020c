"""Mounts that keep an agent's writes outside of its folder from the user's own files.

`enter_namespaces.py` calls this inside the new mount namespace. Standard library only, with few
imports: every run waits for this.
"""

import errno
import os

from recorder.agent.enter_namespaces import mount_overlay, remount_read_only
from sandbox.kernel import MS_BIND, MS_REC, mount_path, set_read_only


def divert_outside_writes(
    folders: list[tuple[str, str]], kept: list[str], required: bool = False
) -> None:
    """Mount an overlay at each folder, whose writes go to its layer, and `kept` as it is.

    `folders` has pairs of a folder and its layer, outer ones first. A folder that cannot be the
    lower layer of an overlay becomes read-only, and so does `/` itself. Raises OSError if a mount
    fails, or if an overlay is `required` and cannot be mounted.
    """
    originals: dict[str, str] = {}
    for path in (*(path for path, _ in folders), *kept):
        try:
            originals[path] = f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_CLOEXEC)}"
        except OSError:
            continue  # unmounted meanwhile, or the agent may not open it either
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


def set_tree_read_only(path: str) -> None:
    """Make a mount and all below it read-only; before Linux 5.12 only the mount itself."""
    try:
        set_read_only(path, deep=True)
    except OSError:
        remount_read_only(path)
