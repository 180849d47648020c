"""Where compiled programs run: an RV64 machine that counts, in processes that serve many programs.

A process is taken for one program and given back after it, so that threads run as many beside one
another as they like. Where unicorn itself dies or hangs, the process is ended, the run says
`machine`, and the next program gets a new one.
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
"""Instructions that a program may execute, unless it is told otherwise."""
MEMORY = 4 << 30
"""Address space that a process of unicorn's may take, most of which it never touches."""

type Ended = Literal["exit", "crash", "limit", "machine"]
"""`machine`: unicorn failed, which says nothing of the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a program did: the same in every run."""

    stdout: bytes
    exit: int | None
    """0 to 255; None where it did not come to its exit."""
    instructions: int
    """Executed, those of the runtime included."""
    ended: Ended
    why: str = ""


class Worker:
    """A process with unicorn in it, which runs one program at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scenarios.compiler.fast"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        resource.prlimit(self._process.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, elf: bytes, stdin: bytes, limit: int) -> Ran:
        """What a program did; a process that gives no answer in time is ended."""
        # A program that never jumps far runs at 50,000,000 a second on a machine with nothing else
        # to do; all the ecalls that it may make take half a minute there.
        watch = Timer(240 + limit / 1_000_000, self._process.kill)
        watch.start()
        try:
            return self._ask(elf, stdin, limit)
        except (EOFError, BrokenPipeError):
            code = self._process.wait(timeout=10)
            why = f"the machine's process ended with {code}"
            return Ran(stdout=b"", exit=None, instructions=0, ended="machine", why=why)
        finally:
            watch.cancel()

    def _ask(self, elf: bytes, stdin: bytes, limit: int) -> Ran:
        sink, source = self._process.stdin, self._process.stdout
        assert sink is not None
        assert source is not None
        asked = json.dumps({"elf": len(elf), "stdin": len(stdin), "limit": limit})
        sink.write(asked.encode() + b"\n" + elf + stdin)
        sink.flush()
        if not (line := source.readline()):
            raise EOFError
        said = json.loads(line)
        size = said.pop("stdout")
        if len(stdout := source.read(size)) < size:
            raise EOFError
        return Ran(stdout=stdout, **said)

    def close(self) -> None:
        """End the process, which is between two programs or broken."""
        self._process.kill()
        self._process.communicate()


_idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()


def run(elf: bytes, stdin: bytes = b"", limit: int = LIMIT) -> Ran:
    """Run a static RV64IM program to its end, at most `limit` instructions."""
    try:
        worker = _idle.get_nowait()
    except queue.Empty:
        worker = Worker()
    ended: Ended = "machine"
    try:
        ran = worker.run(elf, stdin, limit)
        ended = ran.ended
    finally:
        # One that was left in the middle of a program would give its answer to the next.
        if ended == "machine":
            worker.close()
        else:
            _idle.put(worker)
    return ran


@atexit.register
def close() -> None:
    """End the processes that wait for a program."""
    while not _idle.empty():
        _idle.get().close()
