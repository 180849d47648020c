"""A full disk: a tmpfs of 20 MB, or where nothing can be mounted, a limit on the size of files."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LIMITED_BYTES = 300
"""The size of a file with which a process meets its limit; smaller than any tape."""


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A folder that is a disk of its own, if `mounted`."""

    folder: Path
    mounted: bool

    def fill(self, process: int) -> None:
        """Leave room for one page or two."""
        if self.mounted:
            disk = os.statvfs(self.folder)
            with (self.folder / "fill").open("ab") as file:
                file.write(bytes(max(0, disk.f_bavail * disk.f_frsize - 6000)))
        else:
            _limit(process, LIMITED_BYTES)

    def free(self, process: int) -> None:
        """Give all room back."""
        if self.mounted:
            (self.folder / "fill").unlink()
        else:
            _limit(process, resource.RLIM_INFINITY)


def _limit(process: int, size: int) -> None:
    resource.prlimit(process, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@contextmanager
def small_disk(parent: Path) -> Iterator[SmallDisk]:
    """Mount a disk below `parent`, if this user may."""
    folder = parent / "disk"
    folder.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(folder))
    mounted = subprocess.run(mount, capture_output=True, timeout=30).returncode == 0
    try:
        yield SmallDisk(folder, mounted)
    finally:
        if mounted:
            subprocess.run(("umount", "-l", str(folder)), check=True, timeout=30)
