"""A program that nobody vouches for, run with limits, and ended with all that it started.

It gets its environment, its input and a scratch folder from us and nothing else; what it prints
and leaves is bounded. `warden.py` says which walls stand around it where the kernel allows.
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal

WARDEN = Path(__file__).with_name("warden.py")
PATIENCE = 10.0
"""Seconds that ending everything may take."""
PIECE, REPORT = 1 << 16, 1 << 16
WALLS = ("network", "folders", "processes", "count")
"""What can be had: no network, only its own folders to write to and some hidden, processes of
which none survives and whose use is added up, a count of processes of its own."""

type Beyond = Literal["cpu", "memory", "disk", "processes", "output", "wall"]

# What programs say when a limit stops them, who then exit by themselves (errno(3), and the words
# of C++ and Python).
SAID: tuple[tuple[Beyond, tuple[bytes, ...]], ...] = (
    ("processes", (b"Resource temporarily unavailable", b"can't start new thread")),
    ("memory", (b"MemoryError", b"bad_alloc", b"Cannot allocate memory", b"out of memory")),
    ("disk", (b"File too large", b"No space left on device")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one run may use, of bytes and seconds; `wall` is the last stop and no measure."""

    cpu: float = 10.0
    """Seconds of processor time, of all its processes together where that can be told."""
    memory: int = 4 << 30
    """Of addresses for each process, and of memory for all together where that can be told."""
    file: int = 64 << 20
    disk: int = 256 << 20
    processes: int = 64
    files: int = 256
    output: int = 1 << 20
    """Of standard output and of standard error, each."""
    wall: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended."""

    code: int | None
    """Its exit code, -n where signal n ended it; None where we did."""
    beyond: Beyond | None
    """The limit that stopped it."""
    stdout: bytes
    stderr: bytes
    left: bytes | None = None
    """What it left in the file asked for; None where `without` says why there is nothing."""
    without: str = ""
    unstarted: str = ""
    """Why it could not be started."""
    cpu: float = 0.0
    memory: int = 0
    walls: tuple[str, ...] = ()
    """Which of WALLS stood around it."""


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    scratch: Path,
    env: Mapping[str, str],
    limits: Limits | None = None,
    stdin: bytes = b"",
    writes: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    shown: Mapping[Path, Path] | None = None,
    left: str | None = None,
) -> Ended:
    """Run a command to its end and hand back the file `left` of its scratch folder.

    `scratch` is an empty folder, which stays empty where the walls of folders stand; `writes`
    are folders that it may change besides, and that are its own user's after that; it sees
    `hidden` folders empty, and in place of each key of `shown` the folder that is its value,
    where the walls of folders stand. ChildProcessError where it is we who failed.
    """
    limits = limits or Limits()
    order: dict[str, object] = {
        "command": list(command),
        "cwd": str(cwd),
        "scratch": str(scratch),
        "env": dict(env),
        "left": left,
        "writes": [str(folder) for folder in writes],
        "hidden": [str(folder) for folder in hidden],
        "shown": [(str(folder), str(path)) for path, folder in (shown or {}).items()],
        "limits": asdict(limits),
    }
    heard = _Heard(limits)
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        with _warden(order, given) as (warden, report, hold):
            assert warden.stdout is not None
            assert warden.stderr is not None
            heard.listen({"stdout": warden.stdout, "stderr": warden.stderr, "report": report}, hold)
    return heard.ended(asked=left is not None)


@contextmanager
def _warden(
    order: dict[str, object], stdin: IO[bytes]
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]]:
    """A warden, its report, and what keeps it going as long as it is open."""
    hold, holding = os.pipe()
    report, reporting = os.pipe()
    told = marshal.dumps(order | {"hold": hold, "report": reporting}).hex()
    with os.fdopen(report, "rb") as reported, os.fdopen(holding, "wb", 0) as held:
        try:
            warden = subprocess.Popen(
                [sys.executable, "-I", "-S", str(WARDEN), told],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(hold, reporting),
                env={},
                start_new_session=True,
            )
        finally:
            os.close(hold)
            os.close(reporting)
        with warden:
            try:
                yield warden, reported, held
            finally:
                held.close()
                end(warden)


def end(warden: subprocess.Popen[bytes]) -> None:
    """Wait for a warden that was let go of; it is killed where it does not end."""
    try:
        warden.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(warden.pid, signal.SIGKILL)
        warden.wait()


class _Heard:
    """What a command printed and its warden reported, as far as they may."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.got = {name: bytearray() for name in ("stdout", "stderr", "report")}
        self.stopped: Beyond | None = None

    def listen(self, streams: Mapping[str, IO[bytes]], hold: IO[bytes]) -> None:
        """Hear all to the end, and let go of the warden where it is too much or too long."""
        most = {name: self.limits.output for name in streams}
        most["report"] = self.limits.file + REPORT
        deadline = time.monotonic() + self.limits.wall
        with selectors.DefaultSelector() as heard:
            for name, stream in streams.items():
                heard.register(stream, selectors.EVENT_READ, name)
            while heard.get_map():
                ready = heard.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    if hold.closed:
                        return
                    self.stopped = self.stopped or "wall"
                for key, _ in ready:
                    piece, name = os.read(key.fd, PIECE), str(key.data)
                    if not piece:
                        heard.unregister(key.fileobj)
                    elif len(self.got[name]) + len(piece) <= most[name]:
                        self.got[name] += piece
                    else:
                        self.stopped = self.stopped or "output"
                over = "report" not in {key.data for key in heard.get_map().values()}
                if (self.stopped or over) and not hold.closed:
                    hold.close()
                    deadline = time.monotonic() + PATIENCE

    def ended(self, *, asked: bool) -> Ended:
        """How it ended; ChildProcessError where the warden failed."""
        report = io.BytesIO(self.got["report"])
        if not self.got["report"]:
            why = bytes(self.got["stderr"]).decode(errors="replace").strip().splitlines()
            raise ChildProcessError(f"the warden failed: {why[-1] if why else 'without a word'}")
        said: dict[str, Any] = marshal.load(report)
        return Ended(
            code=None if said["over"] else said["code"],
            beyond=self._beyond(said),
            stdout=bytes(self.got["stdout"]),
            stderr=bytes(self.got["stderr"]),
            left=report.read() if asked and not said["without"] else None,
            without=said["without"],
            unstarted=said["unstarted"],
            cpu=said["cpu"],
            memory=said["memory"],
            walls=tuple(wall for wall in WALLS if wall in said["had"]),
        )

    def _beyond(self, said: dict[str, Any]) -> Beyond | None:
        """The limit that stopped it: as we know where we did it, else as it looks."""
        if self.stopped and said["over"]:
            return "processes" if said["crowded"] and self.stopped == "wall" else self.stopped
        if said["over"]:
            over: Beyond = "processes" if said["crowded"] else said["over"]
            return over
        if said["code"] == 0 or said["unstarted"]:
            return None
        if said["code"] == -signal.SIGXCPU or said["cpu"] > self.limits.cpu:
            return "cpu"
        if said["code"] == -signal.SIGXFSZ or said["full"]:
            return "disk"
        last = bytes(self.got["stderr"][-4096:])
        looks = (beyond for beyond, words in SAID if any(word in last for word in words))
        return "processes" if said["crowded"] else next(looks, None)
