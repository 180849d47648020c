"""`stumble` as a process whose memory and time are measured."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How a command ended, and what it took."""

    code: int
    out: str
    err: str
    seconds: float
    """CPU time of the process."""
    memory: int
    """Bytes that it had in memory at most."""


LAUNCHER = """
import json, os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(pid, 0)
code, seconds = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
with open(sys.argv[1], "w") as file:
    json.dump([code, seconds, used.ru_maxrss], file)
"""
"""Starts the command from a small process: `ru_maxrss` begins at what its parent had."""


def measured(*arguments: str, folder: Path, timeout: float = 60) -> Measured:
    """Run `stumble`; TimeoutError, and the process ended, if it takes too long."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")}
    env |= {"HOME": str(folder), "STUMBLE_STORE": str(folder / ".stumble")}
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.NamedTemporaryFile() as usage,
    ):
        launcher = [sys.executable, "-S", "-E", "-c", LAUNCHER, usage.name]
        process = subprocess.Popen(
            [*launcher, sys.executable, "-m", "stumble", *arguments],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            command = " ".join(arguments)
            raise TimeoutError(f"stumble {command}: not over in {timeout:g} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        code, seconds, kilobytes = json.load(usage)
        out.seek(0)
        err.seek(0)
        return Measured(
            code=code,
            out=out.read().decode(errors="replace"),
            err=err.read().decode(errors="replace"),
            seconds=seconds,
            memory=kilobytes * 1024,
        )
