"""The most memory that a process ever had.

Not `ru_maxrss` of a process that a large one started: it begins at what that one had (Linux keeps
the high-water mark of the memory that `exec` replaces).
"""

from pathlib import Path


def read_peak_memory() -> int:
    """Bytes that this process had at most."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
