"""The processes that the proxy benchmark compares: a server, mitmdump, and the recording proxy.

    ours      the proxy without any tap
    verbatim  with a tape, secrets written unchanged
    redact    with a tape, secrets replaced
    record    as in `stumble record`: conversations are tracked, too

python -m tests.bench.serving NAME FOLDER runs one of them.
"""

import asyncio
import itertools
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from recorder.ending_signals import SignalInterrupt
from recorder.event_loop import run_event_loop
from recorder.proxy.recording import start_recording_proxy
from recorder.proxy.route import UpstreamRoute
from tests.bench.conversation import SOURCES
from tests.support.servers.raw_servers import (
    server_ca,
    server_tls,
)
from traces.conversation.tracker import ConversationTap
from traces.model import Trajectory
from traces.tape import TapeWriter
from traces.taps import TapChain

ROOT = Path(__file__).resolve().parents[2]
PROXIES = ("mitmdump", "ours", "verbatim", "redact", "record")
STREAMING = "mitmdump -w"
"""mitmdump that passes a stream on as it comes, and writes it."""
SIZES = (1_000, 100_000, 5_000_000)
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def text(size: int) -> bytes:
    """Return JSON of this size that contains source text, like agents' requests and answers."""
    said = {"id": "chatcmpl-9xK2mQp0aBcDeFgHiJkLmNoP", "model": "m", "content": ""}
    room = size - len(json.dumps(said)) - 1
    escaped = json.dumps(SOURCES)[1:-1]
    content = (escaped * (room // len(escaped) + 1))[:room].rstrip("\\")
    return (json.dumps(said)[:-2] + content + '"}').ljust(size).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A listening process."""

    ports: tuple[int, ...]
    pid: int

    def used(self) -> float:
        """Return the processor seconds so far of all threads, to the microsecond."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


@contextmanager
def started(name: str, folder: Path) -> Iterator[Serving]:
    """Run one of the processes for the block, from when it answers."""
    command = [sys.executable, "-m", "tests.bench.serving", name, str(folder)]
    ports: tuple[int, ...] = ()
    if name.startswith("mitmdump"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports = (free.getsockname()[1],)
        command = [str(Path(sys.executable).with_name("mitmdump")), "-q", "-p", str(ports[0])]
        command += ["--listen-host", "127.0.0.1", "--set", f"confdir={folder}/mitmdump"]
        command += ["--set", f"ssl_verify_upstream_trusted_ca={folder}/server.pem"]
    if name == STREAMING:
        command += ["--set", "stream_large_bodies=1", "-w", str(folder / "mitmdump.flows")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ports = ports or tuple(int(word) for word in process.stdout.readline().split())
            _answering(ports[0])
            yield Serving(ports=ports, pid=process.pid)
        finally:
            process.terminate()


def _answering(port: int) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


class Answering(asyncio.Protocol):
    """Answers POST /SIZE with that many bytes, and GET /events/COUNT/GAP with a stream of events.

    Each event contains its sending time, in seconds of time.monotonic(); GAP is in ms.
    """

    answers: dict[int, bytes]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.got = cast(asyncio.Transport, transport), b""

    def data_received(self, data: bytes) -> None:
        self.got += data
        head, end, body = self.got.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length: ")[2] or 0):
            return
        self.got, path = b"", head.split(b" ", 2)[1].rpartition(b"//")[2].split(b"/")[1:]
        if path[0] == b"events":
            self.task = asyncio.create_task(self._events(int(path[1]), float(path[2]) / 1e3))
        else:
            self.transport.write(self.answers[int(path[-1])])

    async def _events(self, count: int, gap: float) -> None:
        self.transport.write(STREAM)
        began = time.monotonic()
        for number in range(count):
            await asyncio.sleep(max(0, began + number * gap - time.monotonic()))
            event = b"data: %.7f\n\n" % time.monotonic()
            self.transport.write(b"%x\r\n%b\r\n" % (len(event), event))
        self.transport.write(b"0\r\n\r\n")


async def serve(folder: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    Answering.answers = {size: head % size + text(size) for size in SIZES}
    loop = asyncio.get_running_loop()
    plain = await loop.create_server(Answering, "127.0.0.1", 0)
    secure = await loop.create_server(Answering, "127.0.0.1", 0, ssl=server_tls())
    (folder / "server.pem").write_bytes(server_ca().read_bytes())
    print(*(each.sockets[0].getsockname()[1] for each in (plain, secure)), flush=True)
    await asyncio.Event().wait()


async def listen(name: str, folder: Path) -> None:
    home = folder / name
    home.mkdir()
    taps, run_of_it = list[object](), Trajectory(id="bench", recorded_at=time.time())
    with ExitStack() as stack:
        if name == "record":
            taps.append(ConversationTap())
        if name != "ours":
            redact = name != "verbatim"
            writer = TapeWriter(home / "bench.tape", run_of_it, secrets=SECRETS, redact=redact)
            taps.append(stack.enter_context(writer))
        began, seqs = time.monotonic(), itertools.count(1)
        trusted = folder / "server.pem"
        async with start_recording_proxy(
            TapChain(taps),
            confdir=home,
            began=began,
            seqs=seqs,
            upstream=UpstreamRoute(ca_file=trusted),
        ) as here:
            print(here.port, flush=True)
            await asyncio.Event().wait()


SECRETS = (
    "sk-proj-Zx81kQp0aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcd",
    "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ012345",
    "tvly-0123456789abcdefghij",
)
"""As many keys as in a developer's environment."""


if __name__ == "__main__":
    with suppress(SignalInterrupt):  # the bench has ended
        match sys.argv[1:]:
            case ["server", folder]:
                run_event_loop(serve(Path(folder)))
            case [name, folder]:
                run_event_loop(listen(name, Path(folder)))
