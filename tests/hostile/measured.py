"""`stumble` as a process whose memory and time are measured."""

import os
import subprocess
import sys
import tempfile
import time
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


def measured(*arguments: str, folder: Path, timeout: float = 60) -> Measured:
    """Run `stumble`; TimeoutError, and the process ended, if it takes too long."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")}
    env |= {"HOME": str(folder), "STUMBLE_STORE": str(folder / ".stumble")}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "stumble", *arguments],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        deadline = time.monotonic() + timeout
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise TimeoutError(f"stumble {' '.join(arguments)}: not over in {timeout:g} s")
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Measured(
            code=process.returncode,
            out=out.read().decode(errors="replace"),
            err=err.read().decode(errors="replace"),
            seconds=usage.ru_utime + usage.ru_stime,
            memory=usage.ru_maxrss * 1024,
        )
