"""How many processors this process may use: by its affinity, and by the limit of its cgroup."""

import math
import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def count_usable_processors(root: Path = _CGROUPS, own: str | None = None) -> int:
    """Return at least 1; `own` is the text of /proc/self/cgroup.

    Wire facts: cpu.max holds `QUOTA PERIOD` or `max PERIOD` in microseconds (cgroup-v2.rst), in the
    old hierarchy cpu.cfs_quota_us is -1 without a limit; each folder above limits what is below.
    """
    usable = os.process_cpu_count() or 1
    limits = [_read_limit(folder) for folder in _list_cgroup_folders(root, own)]
    return max(1, min([usable, *(math.ceil(each) for each in limits if each is not None)]))


def _list_cgroup_folders(root: Path, own: str | None) -> list[Path]:
    try:
        text = Path("/proc/self/cgroup").read_text() if own is None else own
    except OSError:
        return []
    folders = []
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "cpu" if controllers else root
        below = mount / path.lstrip("/")
        folders += [below, *(each for each in below.parents if each.is_relative_to(mount))]
    return folders


def _read_limit(folder: Path) -> float | None:
    """Return the processors that a cgroup may use; None without a limit."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
    except (OSError, ValueError):
        return None
    return None if quota in ("max", "-1") else int(quota) / int(period)
