"""A pool of emulator processes, each of which serves many programs, with instruction counts.

A process is taken from the pool for one program and returned after it, so that any number of
threads can run programs. A process that needs too much time for a program is killed, and the
program has reached a limit. If unicorn itself crashes, that is the program's doing as well, unless
a program that does nothing crashes too: then the run ends as `machine`.
"""

import atexit
import json
import os
import queue
import resource
import signal
import struct
import subprocess
import sys
from copy import replace
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Literal

SECONDS, WALL_SECONDS = 60, 290.0
"""Processor and other time for one program. Translated code runs at 50,000,000 instructions a s
on an idle machine; the maximum of code and of ecalls takes half a minute each.
"""
LIMIT = 50_000_000
"""Default limit of instructions per program."""
MEMORY = 4 << 30
"""Address space of an emulator process in bytes, most of which is never touched."""

type EmulationEnd = Literal["exit", "crash", "limit", "machine"]
"""`machine`: unicorn failed, which is no verdict on the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulationResult:
    """The result of a program, identical in every run."""

    stdout: bytes
    exit: int | None
    """0 to 255; None if the program did not exit."""
    instructions: int
    """Instructions executed, including the runtime's."""
    ended: EmulationEnd
    why: str = ""


_IDLE_PROGRAM = struct.pack(
    "<16sHHIQQQIHHHHHHIIQQQQQQ3I",
    *(b"\x7fELF\x02\x01\x01", 2, 243, 1, 0x10078, 64, 0, 0, 64, 56, 1, 0, 0, 0),
    *(1, 5, 0, 0x10000, 0x10000, 132, 132, 4096),
    *(0x05D00893, 0x00000513, 0x00000073),  # li a7, 93; li a0, 0; ecall
)
"""An ELF that exits at once."""


class EmulatorProcess:
    """An emulator process, which runs one program at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scenarios.pipeline.compiler.native_counter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        resource.prlimit(self._process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, elf: bytes, stdin: bytes, limit: int) -> EmulationResult:
        """Return the result of a program; a process that does not answer in time is killed."""
        watch = Timer(WALL_SECONDS, self._process.kill)
        watch.start()
        try:
            until = int(_read_cpu_seconds(self.pid)) + SECONDS
            resource.prlimit(self.pid, resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
            return self._request_run(elf, stdin, limit)
        except (EOFError, BrokenPipeError):
            code = self._process.wait(timeout=10)
            late = code == -signal.SIGXCPU or watch.finished.is_set()
            why = f"the machine's process ended with {code}"
            if late:
                why = f"not at its end after {SECONDS} s of processor time"
            ended: EmulationEnd = "limit" if late else "machine"
            return EmulationResult(stdout=b"", exit=None, instructions=0, ended=ended, why=why)
        finally:
            watch.cancel()

    def _request_run(self, elf: bytes, stdin: bytes, limit: int) -> EmulationResult:
        sink, source = self._process.stdin, self._process.stdout
        assert sink is not None
        assert source is not None
        request = json.dumps({"elf": len(elf), "stdin": len(stdin), "limit": limit})
        sink.write(request.encode() + b"\n" + elf + stdin)
        sink.flush()
        if not (line := source.readline()):
            raise EOFError
        report = json.loads(line)
        size = report.pop("stdout")
        if len(stdout := source.read(size)) < size:
            raise EOFError
        return EmulationResult(stdout=stdout, **report)

    def is_running(self) -> bool:
        """Return whether it can serve another program."""
        return self._process.poll() is None

    def close(self) -> None:
        """Kill the process, which is idle or broken."""
        self._process.kill()
        self._process.communicate()


_idle: queue.SimpleQueue[EmulatorProcess] = queue.SimpleQueue()


def run_emulated(elf: bytes, stdin: bytes = b"", limit: int = LIMIT) -> EmulationResult:
    """Run a static RV64IM program to its end, for at most `limit` instructions."""
    result = _run_in_pool(elf, stdin, limit)
    if result.ended == "machine" and _run_in_pool(_IDLE_PROGRAM, b"", LIMIT).ended == "exit":
        return replace(result, ended="crash")
    return result


def _run_in_pool(elf: bytes, stdin: bytes, limit: int) -> EmulationResult:
    try:
        worker = _idle.get_nowait()
    except queue.Empty:
        worker = EmulatorProcess()
    try:
        result = worker.run(elf, stdin, limit)
    except BaseException:
        worker.close()  # interrupted in a program, it would answer the next request with its result
        raise
    if worker.is_running():
        _idle.put(worker)
    else:
        worker.close()
    return result


def _read_cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@atexit.register
def close_idle_emulators() -> None:
    """Kill the idle processes."""
    while not _idle.empty():
        _idle.get().close()
