"""Starts the command of a group, ends it past its limit, and leaves no process behind."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 4000
"""Seconds after which a group is interrupted, unless another limit is given."""
GRACE = 60
"""Seconds that it then has to print what has failed so far."""

RUNNING: set[int] = set()
"""Process groups of the commands that run now."""
INTERRUPTED: list[int] = []
"""Signals that ended the run."""


@contextlib.contextmanager
def start_command(
    command: Sequence[str], environment: Mapping[str, str], limit: float = LIMIT
) -> Iterator[subprocess.Popen[str]]:
    """A command in a session of its own, its output on one pipe, interrupted after `limit` s."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        RUNNING.add(process.pid)
        timers = (
            threading.Timer(limit, send_signal, (process.pid, signal.SIGINT)),
            threading.Timer(limit + GRACE, send_signal, (process.pid, signal.SIGKILL)),
        )
        for timer in timers:
            timer.start()
        try:
            yield process
            process.wait()
        finally:
            for timer in timers:
                timer.cancel()
            RUNNING.discard(process.pid)
            send_signal(process.pid, signal.SIGKILL)


def lower_priority(pid: int) -> None:
    """Give a session of processes what the others leave; Linux ranks sessions, not processes."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, pid, 19)
        Path(f"/proc/{pid}/autogroup").write_text("19")


def send_signal(group: int, number: int) -> None:
    """Signal a process group, which may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def forward_signals() -> None:
    """Hand Ctrl-C, SIGTERM and SIGHUP on to all groups, the second time as SIGKILL.

    A signal that a shell or nohup has us ignore stays ignored here, but not in the tests: a
    handler, unlike being ignored, is not inherited by the programs that are started.
    """

    def forward(number: int, _: object) -> None:
        for group in tuple(RUNNING):
            send_signal(group, signal.SIGKILL if INTERRUPTED else number)
        INTERRUPTED.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        ignored = signal.getsignal(number) is signal.SIG_IGN
        signal.signal(number, (lambda *_: None) if ignored else forward)
