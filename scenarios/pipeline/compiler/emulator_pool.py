"""A pool of emulator processes, each of which serves many programs, with instruction counts.

A process is taken from the pool for one program and returned after it, so that any number of
threads can run programs. If unicorn itself crashes or hangs, its process is killed, the run ends as
`machine`, and the next program gets a new process.
"""

import atexit
import json
import os
import queue
import resource
import subprocess
import sys
from dataclasses import dataclass
from threading import Timer
from typing import Literal

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
        # A program without far jumps runs at 50,000,000 instructions a second on an idle machine;
        # the maximum number of ecalls takes half a minute there.
        watch = Timer(240 + limit / 1_000_000, self._process.kill)
        watch.start()
        try:
            return self._request_run(elf, stdin, limit)
        except (EOFError, BrokenPipeError):
            code = self._process.wait(timeout=10)
            why = f"the machine's process ended with {code}"
            return EmulationResult(stdout=b"", exit=None, instructions=0, ended="machine", why=why)
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

    def close(self) -> None:
        """Kill the process, which is idle or broken."""
        self._process.kill()
        self._process.communicate()


_idle: queue.SimpleQueue[EmulatorProcess] = queue.SimpleQueue()


def run_emulated(elf: bytes, stdin: bytes = b"", limit: int = LIMIT) -> EmulationResult:
    """Run a static RV64IM program to its end, for at most `limit` instructions."""
    try:
        worker = _idle.get_nowait()
    except queue.Empty:
        worker = EmulatorProcess()
    ended: EmulationEnd = "machine"
    try:
        result = worker.run(elf, stdin, limit)
        ended = result.ended
    finally:
        # A process interrupted in a program would answer the next request with that result.
        if ended == "machine":
            worker.close()
        else:
            _idle.put(worker)
    return result


@atexit.register
def close_idle_emulators() -> None:
    """Kill the idle processes."""
    while not _idle.empty():
        _idle.get().close()
