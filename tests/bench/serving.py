"""The processes that the proxy benchmark compares: a server, mitmdump, and the recording proxy.

    ours      the proxy without any tap
    verbatim  with a tape, secrets written unchanged
    redact    with a tape, secrets replaced
    record    as in `stumble record`: conversations are tracked, too

python -m tests.bench.serving NAME FOLDER runs one of them.
"""

import asyncio
import itertools
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
from tests.bench.traffic import (
    SECRETS,
    make_chat_answer,
    make_differing_body,
    make_repeated_body,
)
from tests.support.servers.raw_servers import (
    server_ca,
    server_tls,
)
from traces.conversation.tracker import ConversationTap
from traces.model import Trajectory
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

ROOT = Path(__file__).resolve().parents[2]
PROXIES = ("mitmdump", "ours", "verbatim", "redact", "record")
STREAMING = "mitmdump -w"
"""mitmdump that passes a stream on as it comes, and writes it."""
STARTED = 300
"""Seconds in which a process has to listen, on a busy machine too."""
SIZES = (1_000, 100_000, 5_000_000)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


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
    until = time.monotonic() + STARTED
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


class Answering(asyncio.Protocol):
    """Answers one of these.

    POST /SIZE                  that many bytes, the same each time
    POST /NUMBER/SIZE           about that many bytes, others for each number
    POST /v1/chat/completions   another chat completion each time
    GET /events/COUNT/GAP       events that contain their sending time, in seconds of
                                time.monotonic(); GAP is in ms
    """

    repeated: dict[int, bytes]
    numbers: Iterator[int]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.got = cast(asyncio.Transport, transport), b""

    def data_received(self, data: bytes) -> None:
        self.got += data
        head, end, body = self.got.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length: ")[2] or 0):
            return
        self.got = b""
        match head.split(b" ", 2)[1].rpartition(b"//")[2].split(b"/")[1:]:
            case [b"events", count, gap]:
                self.task = asyncio.create_task(self._events(int(count), float(gap) / 1e3))
            case [b"v1", *_]:
                calls_tool = b'"tools"' in body
                self._answer(make_chat_answer(next(self.numbers), calls_tool=calls_tool))
            case [number, size]:
                self._answer(make_differing_body(int(number), int(size)))
            case [size]:
                self._answer(self.repeated[int(size)])

    def _answer(self, body: bytes) -> None:
        self.transport.write(HEAD % len(body) + body)

    async def _events(self, count: int, gap: float) -> None:
        self.transport.write(STREAM)
        began = time.monotonic()
        for number in range(count):
            await asyncio.sleep(max(0, began + number * gap - time.monotonic()))
            event = b"data: %.7f\n\n" % time.monotonic()
            self.transport.write(b"%x\r\n%b\r\n" % (len(event), event))
        self.transport.write(b"0\r\n\r\n")


async def serve(folder: Path) -> None:
    Answering.repeated = {size: make_repeated_body(size) for size in SIZES}
    Answering.numbers = itertools.count()
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


if __name__ == "__main__":
    with suppress(SignalInterrupt):  # the bench has ended
        match sys.argv[1:]:
            case ["server", folder]:
                run_event_loop(serve(Path(folder)))
            case [name, folder]:
                run_event_loop(listen(name, Path(folder)))
