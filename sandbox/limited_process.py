"""Run an untrusted program with limits, and end it with all the processes it started.

It gets only the given environment, input and scratch folder; its output and the files it leaves are
limited. `supervisor.py` documents the namespaces it is put into if the kernel allows.
"""

import io
import marshal
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

SUPERVISOR = Path(__file__).with_name("supervisor.py")
STOP_TIMEOUT = 10.0
"""Seconds that ending everything may take."""
PIECE, REPORT = 1 << 16, 1 << 16
WALLS = ("network", "folders", "processes", "count")
"""The possible protections: no network; only its own folders writable and some hidden; processes of
which none survives and whose usage is added up; a process count of its own.
"""

type ExceededLimit = Literal["cpu", "memory", "disk", "processes", "output", "wall"]

# Messages of programs that exit by themselves when a limit stops them (errno(3), and those of C++
# and Python).
LIMIT_MESSAGES: tuple[tuple[ExceededLimit, tuple[bytes, ...]], ...] = (
    ("processes", (b"Resource temporarily unavailable", b"can't start new thread")),
    ("memory", (b"MemoryError", b"bad_alloc", b"Cannot allocate memory", b"out of memory")),
    ("disk", (b"File too large", b"No space left on device")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Limits of one run, in bytes and seconds; `wall` is a last resort and not a measure."""

    cpu: float = 10.0
    """Seconds of processor time, summed over all its processes if they can be measured."""
    memory: int = 4 << 30
    """Address space per process, and memory of all processes together if they can be measured."""
    file: int = 64 << 20
    disk: int = 256 << 20
    processes: int = 64
    files: int = 256
    output: int = 1 << 20
    """Of standard output and of standard error, each."""
    wall: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedResult:
    """How a run ended."""

    code: int | None
    """Its exit code, -n if signal n ended it; None if the supervisor did."""
    beyond: ExceededLimit | None
    """The limit that stopped it."""
    stdout: bytes
    stderr: bytes
    left: bytes | None = None
    """Content of the file asked for; None if `without` gives the reason that there is none."""
    without: str = ""
    unstarted: str = ""
    """Why it could not be started."""
    cpu: float = 0.0
    memory: int = 0
    walls: tuple[str, ...] = ()
    """Which of WALLS protected it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderAccess:
    """What a command may do with folders beside its scratch folder."""

    writes: Sequence[Path] = ()
    """Further writable folders, owned by the command's user afterwards."""
    hidden: Sequence[Path] = ()
    """Folders that it sees empty, if the "folders" protection is available."""
    shown: Mapping[Path, Path] = field(default_factory=dict)
    """Folders in whose place it sees another one, with that protection."""
    root: Sequence[Path] | None = None
    """All that it sees besides these folders and its scratch folder, with that protection. None: it
    sees all files of this machine.
    """
    sealed: bool = False
    """Whether it may execute no machine code but that of files that it cannot write, with that
    protection.
    """


DEFAULT_ACCESS = FolderAccess()


def run_limited(
    command: Sequence[str],
    *,
    cwd: Path,
    scratch: Path,
    env: Mapping[str, str],
    limits: ProcessLimits | None = None,
    stdin: bytes = b"",
    folders: FolderAccess = DEFAULT_ACCESS,
    left: str | None = None,
) -> LimitedResult:
    """Run a command to its end and return the file `left` of its scratch folder.

    `scratch` is an empty folder, which stays empty if the "folders" protection is available.
    Raises ChildProcessError if the supervisor failed.
    """
    limits = limits or ProcessLimits()
    order: dict[str, object] = {
        "command": list(command),
        "cwd": str(cwd),
        "scratch": str(scratch),
        "env": dict(env),
        "left": left,
        "writes": [str(folder) for folder in folders.writes],
        "hidden": [str(folder) for folder in folders.hidden],
        "shown": [(str(folder), str(path)) for path, folder in folders.shown.items()],
        "root": None if folders.root is None else [str(path) for path in folders.root],
        "sealed": folders.sealed,
        "limits": asdict(limits),
    }
    collector = _OutputCollector(limits)
    with tempfile.TemporaryFile() as input_file:
        input_file.write(stdin)
        input_file.seek(0)
        with _spawn_supervisor(order, input_file) as (supervisor, report, hold_pipe):
            assert supervisor.stdout is not None
            assert supervisor.stderr is not None
            collector.collect(
                {"stdout": supervisor.stdout, "stderr": supervisor.stderr, "report": report},
                hold_pipe,
            )
    return collector.to_result(asked=left is not None)


@contextmanager
def _spawn_supervisor(
    order: dict[str, object], stdin: IO[bytes]
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]]:
    """Start a supervisor; yield it, its report, and the pipe that keeps it running while open."""
    hold_reader, hold_writer = os.pipe()
    report, report_writer = os.pipe()
    packed_order = marshal.dumps(order | {"hold": hold_reader, "report": report_writer}).hex()
    with os.fdopen(report, "rb") as report_file, os.fdopen(hold_writer, "wb", 0) as hold_file:
        try:
            supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR), packed_order],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(hold_reader, report_writer),
                env={},
                start_new_session=True,
            )
        finally:
            os.close(hold_reader)
            os.close(report_writer)
        with supervisor:
            try:
                yield supervisor, report_file, hold_file
            finally:
                hold_file.close()
                stop_supervisor(supervisor)


def stop_supervisor(supervisor: subprocess.Popen[bytes]) -> None:
    """Wait for a supervisor whose pipe was closed; kill it if it does not end."""
    try:
        supervisor.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(supervisor.pid, signal.SIGKILL)
        supervisor.wait()


class _OutputCollector:
    """The output of a command and its supervisor's report, up to their limits."""

    def __init__(self, limits: ProcessLimits) -> None:
        self.limits = limits
        self.got = {name: bytearray() for name in ("stdout", "stderr", "report")}
        self.stopped: ExceededLimit | None = None

    def collect(self, streams: Mapping[str, IO[bytes]], hold: IO[bytes]) -> None:
        """Read all streams to their end; stop the supervisor at the output or time limit."""
        maximum = {name: self.limits.output for name in streams}
        maximum["report"] = self.limits.file + REPORT
        deadline = time.monotonic() + self.limits.wall
        with selectors.DefaultSelector() as selector:
            for name, stream in streams.items():
                selector.register(stream, selectors.EVENT_READ, name)
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    if hold.closed:
                        return
                    self.stopped = self.stopped or "wall"
                for key, _ in ready:
                    piece, name = os.read(key.fd, PIECE), str(key.data)
                    if not piece:
                        selector.unregister(key.fileobj)
                    elif len(self.got[name]) + len(piece) <= maximum[name]:
                        self.got[name] += piece
                    else:
                        self.stopped = self.stopped or "output"
                is_reported = "report" not in {key.data for key in selector.get_map().values()}
                if (self.stopped or is_reported) and not hold.closed:
                    hold.close()
                    deadline = time.monotonic() + STOP_TIMEOUT

    def to_result(self, *, asked: bool) -> LimitedResult:
        """Return how the run ended. Raises ChildProcessError if the supervisor failed."""
        report = io.BytesIO(self.got["report"])
        if not self.got["report"]:
            error_lines = bytes(self.got["stderr"]).decode(errors="replace").strip().splitlines()
            reason = error_lines[-1] if error_lines else "it printed nothing"
            raise ChildProcessError(f"the sandbox supervisor failed: {reason}")
        outcome: dict[str, Any] = marshal.load(report)
        return LimitedResult(
            code=None if outcome["over"] else outcome["code"],
            beyond=self._find_exceeded_limit(outcome),
            stdout=bytes(self.got["stdout"]),
            stderr=bytes(self.got["stderr"]),
            left=report.read() if asked and not outcome["without"] else None,
            without=outcome["without"],
            unstarted=outcome["unstarted"],
            cpu=outcome["cpu"],
            memory=outcome["memory"],
            walls=tuple(wall for wall in WALLS if wall in outcome["had"]),
        )

    def _find_exceeded_limit(self, table: dict[str, Any]) -> ExceededLimit | None:
        """Return the limit that stopped it: known if it was stopped here, else a likely one."""
        if self.stopped and table["over"]:
            return "processes" if table["crowded"] and self.stopped == "wall" else self.stopped
        if table["over"]:
            exceeded: ExceededLimit = "processes" if table["crowded"] else table["over"]
            return exceeded
        if table["code"] == 0 or table["unstarted"]:
            return None
        if table["code"] == -signal.SIGXCPU or table["cpu"] > self.limits.cpu:
            return "cpu"
        if table["code"] == -signal.SIGXFSZ or table["full"]:
            return "disk"
        tail = bytes(self.got["stderr"][-4096:])
        likely = (beyond for beyond, words in LIMIT_MESSAGES if any(word in tail for word in words))
        return "processes" if table["crowded"] else next(likely, None)
