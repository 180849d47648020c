"""Run a command, wait for it and all of its descendants, and report what they used.

    python -I -S command_reaper.py REPORT_FD SECONDS COMMAND...

The report is JSON. Orphans are adopted (Linux), so that none is missed; those that live on when the
command has ended, and all after SECONDS, are killed. A small process, since `ru_maxrss` of a child
begins at the memory of the process that started it.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
ORPHAN_SECONDS = 5
"""Time in which orphans may end by themselves."""
PAST_LIMIT = 124
"""The exit code, as of timeout(1), of a command that was ended."""


class TimeLimitExceeded(Exception):
    """The time is over, or the process that waits for the report has ended."""


def raise_time_limit(signum: int, frame: FrameType | None) -> None:
    raise TimeLimitExceeded


def wait_for_command(pid: int, limit: int) -> int:
    """Return the exit code of the command; leave no descendant."""
    code = PAST_LIMIT
    signal.alarm(limit)
    try:
        while True:
            child, status = os.wait()
            if child == pid:
                code = os.waitstatus_to_exitcode(status)
                signal.alarm(ORPHAN_SECONDS)
    except TimeLimitExceeded:
        kill_children()
    except ChildProcessError:
        signal.alarm(0)
    return code


def kill_children() -> None:
    """Kill and reap children, and theirs as they are adopted."""
    while children := Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        for child in children:
            os.kill(int(child), signal.SIGKILL)
            os.waitpid(int(child), 0)


def main(report: int, limit: int, command: list[str]) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    os.set_inheritable(report, False)
    for ending in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(ending, raise_time_limit)
    began = time.monotonic()
    pid = os.posix_spawnp(command[0], command, os.environ)
    code = wait_for_command(pid, limit)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    value = {
        "code": code,
        "seconds": time.monotonic() - began,
        "processor": used.ru_utime + used.ru_stime,
        "memory": used.ru_maxrss << 10,
    }
    os.write(report, json.dumps(value).encode())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
