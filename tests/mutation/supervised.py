"""Forked work that ends in time, and leaves no process behind however it ends."""

import contextlib
import ctypes
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PAST_LIMIT = 124
"""The exit code, as of timeout(1), of work that was ended."""
CRASHED = 70


def fork_supervised(work: Callable[[], int], output: Path, limit: float) -> int:
    """The id of a process that runs `work` for at most `limit` seconds, its output in a file.

    The process exits as `work` does. It adopts all that `work` starts, whatever session that is
    in, and kills it at the end, also if it is itself ended by SIGTERM or loses its parent.
    """
    sys.stdout.flush()  # or the fork would write it again
    sys.stderr.flush()
    parent = os.getpid()
    return _fork(lambda: _supervise(work, output, limit, parent))


def _supervise(work: Callable[[], int], output: Path, limit: float, parent: int) -> int:
    os.setsid()
    for ending in ENDING_SIGNALS:
        signal.signal(ending, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        return CRASHED
    try:
        supervisor = os.getpid()
        return _wait(_fork(lambda: _work(work, output, supervisor)), limit)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end_descendants()


def _work(work: Callable[[], int], output: Path, supervisor: int) -> int:
    for ending in ENDING_SIGNALS:
        signal.signal(ending, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        return CRASHED
    with output.open("wb") as file, Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    return work()


def _wait(pid: int, limit: float) -> int:
    waited = os.pidfd_open(pid)
    try:
        if not select.select([waited], [], [], limit)[0]:
            return PAST_LIMIT
    finally:
        os.close(waited)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _end_descendants() -> None:
    """Kill the children of this process, until none is left that another one's death adds."""
    while children := _children():
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            _, _, rest = stat.read_text().rpartition(")")
            if int(rest.split()[1]) == os.getpid():
                found.append(int(stat.parent.name))
    return found


def _fork(work: Callable[[], int]) -> int:
    """The id of a process that exits as `work` does, and that `work` has to unblock signals in.

    A handler that raises while Python forks would have its exception dropped.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        pid = os.fork()
        if pid == 0:
            _exit_with(work)
        return pid
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _exit_with(work: Callable[[], int]) -> NoReturn:
    """End this process as `work` does; the frames that it was forked in never go on."""
    code = CRASHED
    try:
        code = work()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else CRASHED
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
