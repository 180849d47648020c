"""A daemon as a process of its own, as users start it, and what is on its tapes."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from traces.tape.reader import Tape, read_tape

WAIT_SECONDS = 60.0


@dataclass(slots=True)
class Daemon:
    """A daemon of a store; `restart` hands its sockets to a successor."""

    store: Path
    port: int
    pages: int
    arguments: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    others: list[int] = field(default_factory=list)

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def id(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        env = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")}
        env |= {"STUMBLE_STORE": str(self.store), "HOME": str(self.store.parent / "home")}
        command = (sys.executable, "-m", "stumble", "record", "--daemon")
        where = ("--listen", f"127.0.0.1:{self.port}", "--metrics", f"127.0.0.1:{self.pages}")
        before = self.log.read_text().count("recording on")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                (*command, *where, *self.arguments), stderr=log, env=env
            )
        self.wait_for("recording on", before + 1)

    def wait_for(self, words: str, times: int = 1) -> None:
        """Wait until the daemon has said this so often."""
        end = time.monotonic() + WAIT_SECONDS
        while self.log.read_text().count(words) < times:
            assert time.monotonic() < end, self.log.read_text()
            assert self.process is None or self.process.poll() in (None, 0), self.log.read_text()
            time.sleep(0.02)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def hand_over(self) -> None:
        """Have the one that accepts connections start a successor."""
        assert self.process is not None
        os.kill((self.process.pid, *self.list_successors())[-1], signal.SIGUSR2)

    def list_successors(self) -> list[int]:
        """The ids of all successors since the first start, in order."""
        return [*map(int, re.findall(r"successor started, process (\d+)", self.log.read_text()))]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(WAIT_SECONDS)
        self.process = None

    def list_helpers(self) -> list[int]:
        """The ids of the processes that this one started."""
        children = Path(f"/proc/{self.id}/task/{self.id}/children").read_text()
        return [int(id) for id in children.split()]

    def stop(self) -> None:
        """End it, and its successors, and wait for their tapes."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            assert self.process.wait(WAIT_SECONDS) == 0, self.log.read_text()
        for id in self.list_successors():
            with suppress(ProcessLookupError):
                os.kill(id, signal.SIGTERM)
            wait_for_end([id])

    def page(self, name: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.pages}/{name}", timeout=30) as answer:
            return str(answer.read().decode())

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        lines = re.findall(rf"^stumble_{name}(?:{{.*}})? (\S+)$", self.page("metrics"), re.M)
        return sum(map(float, lines))

    def tapes(self) -> list[Tape]:
        """All tapes, also those of conversations that are not over."""
        paths = [*self.store.glob("tapes/*.tape"), *self.store.glob("incoming/*.tape")]
        return [read_tape(path) for path in sorted(paths)]


def wait_for_end(ids: Sequence[int]) -> None:
    """Wait until these processes have ended; one that nobody waits for may stay as a zombie."""
    end = time.monotonic() + WAIT_SECONDS
    for id in ids:
        with suppress(FileNotFoundError, ProcessLookupError):
            while Path(f"/proc/{id}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                assert time.monotonic() < end, f"process {id} is left"
                time.sleep(0.02)


def count_by_tag(tapes: Sequence[Tape]) -> Counter[str]:
    """Whole answers on tapes, by the tag of their conversation; a mixed tape fails."""
    counts: Counter[str] = Counter()
    for tape in tapes:
        tags = Counter(
            tag
            for each in tape.exchanges
            if each.response is not None
            and each.response.status == 200
            and each.response.ended is not None
            for tag in [find_tag(each.request.body, each.response.body)]
        )
        assert len(tags) <= 1, f"{tape.trajectory.id} mixes {sorted(tags)}"
        counts += tags
    return counts


def find_tag(request: bytes, response: bytes) -> str:
    """The tag in the account of a call, its result or its answer."""
    text = (request + response).decode()
    found = {tag for tag in re.findall(r"acct-(\w+)-77", text)}
    assert len(found) == 1, text
    (tag,) = found
    return str(tag)


@contextmanager
def daemon(folder: Path, rules: str, hosts: dict[str, int], *more: str) -> Iterator[Daemon]:
    """A running daemon with these rules, which reaches hosts by name at ports of this machine."""
    (folder / "home").mkdir(exist_ok=True)
    (folder / "rules.toml").write_text(rules)
    options = [w for name, port in hosts.items() for w in ("--host", f"{name}=127.0.0.1:{port}")]
    found = Daemon(
        store=folder / "store",
        port=free_port(),
        pages=free_port(),
        arguments=("--daemon-rules", str(folder / "rules.toml"), *options, *more),
        log=folder / "daemon.log",
    )
    found.log.touch()
    found.start()
    try:
        yield found
    finally:
        found.stop()


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
