"""Landlock: the kernel refuses any file change by this process (Linux 5.13 and later).

Rights and structures are those of `linux/landlock.h`. Files that the process has opened before,
such as its standard output, are unaffected; threads that it starts afterwards are restricted too.
"""

import ctypes
import os
import sys

_CREATE_RULESET, _RESTRICT_SELF = 444, 446
_VERSION_FLAG = 1
_PR_SET_NO_NEW_PRIVS = 38
_FILE_CHANGES = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
"""WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_{CHAR, DIR, REG, SOCK, FIFO, BLOCK, SYM}."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_BIND_AND_CONNECT = 0b11
_SINCE_REFER, _SINCE_TRUNCATE, _SINCE_NETWORK = 2, 3, 4


def forbid_changes() -> bool:
    """Forbid this thread and those it starts to change files or use TCP ports, permanently.

    No file can be written, created, renamed or removed afterwards. Returns False if the kernel has
    no Landlock, or one too old to refuse truncation.
    """
    if not sys.platform.startswith("linux"):
        return False
    call = ctypes.CDLL(None, use_errno=True).syscall
    version = call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    if version < _SINCE_TRUNCATE:
        return False
    network = _BIND_AND_CONNECT if version >= _SINCE_NETWORK else 0
    rights = (ctypes.c_uint64 * 2)(_FILE_CHANGES | _REFER | _TRUNCATE, network)
    size = ctypes.c_size_t(16 if network else 8)
    ruleset = call(_CREATE_RULESET, ctypes.byref(rights), size, ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return bool(call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0)
    finally:
        os.close(ruleset)
