"""The compared replayers, each in a separate process, and the clients that query them.

    matching  ConversationTap and TapePlayer on the replay server
    run       the same and a new tape, which is all of `stumble replay`
    mitmdump  `mitmdump -S` of the locked version, set to reuse each answer
    aimock    from npm, if npm is installed

stumble's recordings are used up by requests, so `matching` and `run` restart on request. vcrpy and
cassetter have no server: each queries itself, in the process that replays.
"""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.installed import environment
from tests.bench.serving import ROOT, Serving

CA = "mitmproxy-ca-cert.pem"
STARTED = 600.0
"""Start-up timeout of a replayer in seconds."""
OURS = ("matching", "run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayer(Serving):
    """A process that replays."""

    ready: float
    """Seconds from its start until it accepted a connection."""
    cpu: float
    """Processor seconds used until then."""
    anew: Callable[[], int]
    """Restarts it if needed; returns the port."""


@contextmanager
def replaying(name: str, file: Path, confdir: Path) -> Iterator[Replayer]:
    """Run one of the replayers for the block, from when it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command, began = _command(name, file, confdir, port), time.perf_counter()
    pipe = subprocess.PIPE if name in OURS else None
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdin=pipe,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:

            def anew() -> int:
                if process.stdin is None or process.stdout is None:
                    return port
                print(file=process.stdin, flush=True)
                return int(process.stdout.readline())

            port = anew()
            _listens(port, process)
            ready = time.perf_counter() - began
            pid = process.pid
            cpu = Serving(ports=(), pid=pid).used()
            yield Replayer(ports=(port,), pid=pid, ready=ready, cpu=cpu, anew=anew)
        finally:
            process.kill()


def _command(name: str, file: Path, confdir: Path, port: int) -> list[str]:
    if name == "mitmdump":
        return [
            str(Path(sys.executable).with_name("mitmdump")),
            *("-q", "--listen-host", "127.0.0.1", "-p", str(port), "-S", str(file)),
            *("--set", f"confdir={confdir}", "--set", "server_replay_reuse=true"),
            *("--set", "connection_strategy=lazy", "--set", "server_replay_extra=404"),
        ]
    if name == "aimock":
        from tests.agents import npm_agent

        node = shutil.which("node") or "node"
        return [node, str(npm_agent("aimock")), "-p", str(port), "-f", str(file), "--strict",
                "--log-level", "silent"]  # fmt: skip
    return [sys.executable, "-m", "tests.bench.playing", name, str(file), str(confdir)]


def _listens(port: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + STARTED
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.002)


@contextmanager
def vcrpy(file: Path) -> Iterator[Callable[[int], float]]:
    """Yield a function that returns the seconds for a recording; each answer is checked there."""
    with _asking_itself(
        [sys.executable, "-m", "tests.bench.playing", "vcrpy", str(file), "-"]
    ) as ask:
        yield lambda number: float(ask(number))


@contextmanager
def cassetter(pairs: Path, cassette: Path) -> Iterator[Callable[[int], tuple[float, bool]]]:
    """Yield a function that returns the seconds, and whether every recorded byte arrived."""
    from tests.agents import environment

    program = str(ROOT / "tests" / "bench" / "cassetting.py")
    command = [str(environment("cassetter")), program, str(pairs), str(cassette)]

    def asked(number: int) -> tuple[float, bool]:
        seconds, exact = ask(number).split()
        return float(seconds), exact == "True"

    with _asking_itself(command) as ask:
        yield asked


@contextmanager
def _asking_itself(command: list[str]) -> Iterator[Callable[[int], str]]:
    with subprocess.Popen(command, cwd=ROOT, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        given, said = process.stdin, process.stdout

        def ask(number: int) -> str:
            print(number, file=given, flush=True)
            return said.readline()

        try:
            assert said.readline() == "ready\n"
            yield ask
        finally:
            process.kill()
