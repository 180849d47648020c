"""The emulator, counting in C: a hook in Python takes longer than the blocks that it counts.

The library is compiled for this machine by the compiler that the workload has anyway, which takes
a twentieth of a second; with it programs run at some 90 million instructions a second, not at 8.
"""

import ctypes
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from unicorn import UC_HOOK_BLOCK
from unicorn.unicorn_py3.unicorn import Uc, uclib

from scenarios.compiler import emulator, toolchain


class Counter(ctypes.Structure):
    """What the hook reads and writes; it must live as long as the machine does."""

    _fields_ = (
        ("size", ctypes.c_uint64),
        ("most", ctypes.c_uint64),
        ("stop", ctypes.c_void_p),
    )

    size: int
    """Bytes of the instructions of all blocks that were begun."""
    most: int


def counting(machine: Uc, limit: int) -> Counter:
    """Count on this machine from now on, and stop it after `limit` instructions."""
    stop = ctypes.cast(uclib.uc_emu_stop, ctypes.c_void_p)
    counter = Counter(size=0, most=4 * limit, stop=stop.value)
    everywhere = (ctypes.c_uint64(1), ctypes.c_uint64(0))  # unicorn's "from 1 to 0"
    failed = uclib.uc_hook_add(
        machine._uch,
        ctypes.byref(ctypes.c_size_t()),
        UC_HOOK_BLOCK,
        ctypes.cast(_library().count, ctypes.c_void_p),
        ctypes.byref(counter),
        *everywhere,
    )
    if failed:
        raise OSError(f"unicorn refuses to count: error {failed}")
    return counter


@cache
def _library() -> ctypes.CDLL:
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        return ctypes.CDLL(str(toolchain.shared(toolchain.RUNTIME / "counter.c", Path(folder))))


if __name__ == "__main__":
    emulator.main(counting)
