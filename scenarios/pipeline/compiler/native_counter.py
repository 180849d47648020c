"""The emulator with an instruction counter in C: a Python hook is slower than the blocks it counts.

The library is compiled for this machine with the toolchain's clang, which takes 0.05 s; with it
programs run at some 90 million instructions a second instead of 8.
"""

import ctypes
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from unicorn import UC_HOOK_BLOCK
from unicorn.unicorn_py3.unicorn import Uc, uclib

from scenarios.pipeline.compiler import emulator, toolchain


class NativeCounter(ctypes.Structure):
    """The hook's data; it must live as long as the machine."""

    _fields_ = (
        ("executed", ctypes.c_uint64),
        ("most", ctypes.c_uint64),
        ("foreign", ctypes.c_uint64),
        ("low", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("code", ctypes.c_char_p),
        ("stop", ctypes.c_void_p),
    )

    executed: int
    """Instructions of all blocks entered."""
    most: int
    foreign: int
    """The address of an instruction of two bytes that was reached, or 0."""


def start_native_counter(machine: Uc, code: emulator.CodeBytes, limit: int) -> NativeCounter:
    """Count instructions on this machine and stop it after `limit` of them."""
    stop = ctypes.cast(uclib.uc_emu_stop, ctypes.c_void_p)
    counter = NativeCounter(
        most=limit, low=code.low, size=len(code.data), code=code.data, stop=stop.value
    )
    everywhere = (ctypes.c_uint64(1), ctypes.c_uint64(0))  # unicorn's "from 1 to 0"
    failed = uclib.uc_hook_add(
        machine._uch,
        ctypes.byref(ctypes.c_size_t()),
        UC_HOOK_BLOCK,
        ctypes.cast(_load_counter_library().count, ctypes.c_void_p),
        ctypes.byref(counter),
        *everywhere,
    )
    if failed:
        raise OSError(f"unicorn refuses to count: error {failed}")
    return counter


@cache
def _load_counter_library() -> ctypes.CDLL:
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        return ctypes.CDLL(
            str(toolchain.compile_shared_library(toolchain.RUNTIME / "counter.c", Path(folder)))
        )


if __name__ == "__main__":
    emulator.main(start_native_counter)
