"""Run a command as a user without privileges: `python -m tests.support.plain_user COMMAND...`.

As root it switches to another user, in a mount namespace in which that user can enter the folders
with the interpreter and the checkout, also where they lie in a closed home. Another user runs the
command as it is. With `--group-of PATH` before the command, the user is in the group of that file.
"""

import ctypes
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

PLAIN_USER = 65533
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18
NEEDED = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).resolve().parents[2])


def find_closed_folders(paths: Iterable[Path]) -> dict[Path, list[Path]]:
    """Return the topmost folders that others cannot enter, with the paths inside them."""
    closed: dict[Path, list[Path]] = {}
    for path in paths:
        above = [each for each in reversed(path.parents) if not each.stat().st_mode & stat.S_IXOTH]
        if above:
            closed.setdefault(above[0], []).append(path)
    return closed


def open_closed_folders(paths: Iterable[Path]) -> None:
    """In a new mount namespace, let others enter these paths, and nothing beside them."""
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
        words = (source.encode(), str(target).encode(), kind.encode(), flags, data.encode())
        if libc.mount(*words) != 0:
            raise OSError(ctypes.get_errno(), f"{target} cannot be mounted")

    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "no mount namespace")
    mount("none", Path("/"), "", MS_REC | MS_PRIVATE)
    for folder, inside in find_closed_folders(paths).items():
        staged = [Path(tempfile.mkdtemp()) for _ in inside]
        for path, stage in zip(inside, staged, strict=True):
            mount(str(path), stage, "", MS_BIND | MS_REC)
        mount("none", folder, "tmpfs", 0, "mode=755")
        for path, stage in zip(inside, staged, strict=True):
            path.mkdir(parents=True, exist_ok=True)
            mount(str(stage), path, "", MS_BIND | MS_REC)


def main(command: Sequence[str]) -> None:
    """Run the command in place of this process."""
    groups = []
    if command[0] == "--group-of":
        groups, command = [Path(command[1]).stat().st_gid], command[2:]
    if os.geteuid() == 0:
        open_closed_folders(dict.fromkeys(path.resolve() for path in NEEDED))
        os.setgroups(groups)
        os.setgid(PLAIN_USER)
        os.setuid(PLAIN_USER)
    os.execvp(command[0], [*command])


if __name__ == "__main__":
    main(sys.argv[1:])
