"""Memory that recording retains for finished exchanges.

    python -m tests.bench.memory [EXCHANGES]

A recording proxy as in `stumble record` (ConversationTap, TapeWriter with redaction) runs in a
separate process. A client sends it requests of 1 KB to a shop, each for another order, and then a
tenth as many to a model, in conversations of 20 steps. The growth of its resident memory is
measured between the first fifth and the end, after garbage collection, and divided by the number of
exchanges in between.
"""

import asyncio
import gc
import itertools
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from recorder.event_loop import run_event_loop
from recorder.proxy.recording import start_recording_proxy
from tests.bench.conversation import conversation
from tests.bench.target import target
from traces.conversation.tracker import ConversationTap
from traces.model import Trajectory
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

EXCHANGES, STEPS = 10_000, 20


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def recording(folder: Path) -> None:
    """Serve until stdin ends; print the resident bytes for each line on stdin."""
    with TapeWriter(
        folder / "a.tape", Trajectory(id="r", recorded_at=0.0), secrets=["s3cr3t-value"]
    ) as tape:
        async with start_recording_proxy(
            TapChain((ConversationTap(), tape)),
            confdir=folder,
            began=time.monotonic(),
            seqs=itertools.count(),
        ) as listening:
            print(listening.port, flush=True)
            while await asyncio.to_thread(sys.stdin.readline):
                print(resident(), flush=True)


@dataclass(slots=True)
class Client:
    """Sends sequential requests through the proxy, and is the server as well."""

    port: int
    answer: bytes = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send the answer that the client expects, whatever the request."""
        while head := await line_of(reader):
            await reader.readexactly(int(head.partition(b"ontent-Length: ")[2].split(b"\r")[0]))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n" % len(self.answer) + self.answer)

    async def ask(self, exchanges: Iterable[tuple[str, bytes, bytes]], server: int) -> None:
        """Request each of these paths with its body, on one connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for path, body, self.answer in exchanges:
            head = f"POST http://127.0.0.1:{server}{path} HTTP/1.1\r\nHost: h\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(self.answer))
        writer.close()


async def line_of(reader: asyncio.StreamReader) -> bytes:
    """Return the head of a request, empty at the end."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


def orders(numbers: range) -> Iterator[tuple[str, bytes, bytes]]:
    """Requests of 1 KB to a shop."""
    for number in numbers:
        body = (b'{"order": %d, "note": "' % number).ljust(1022, b"x") + b'"}'
        yield f"/orders/{number}", body, b"x" * 1024


def steps(numbers: range) -> Iterator[tuple[str, bytes, bytes]]:
    """Model requests, each with its conversation so far."""
    for seed in range(numbers.start // STEPS, numbers.stop // STEPS):
        for exchange in conversation(STEPS, seed):
            assert exchange.response is not None
            said = b'"user", "content": "'
            body = exchange.request.body.replace(said, said + b"%d" % seed, 1)
            yield "/v1/chat/completions", body, exchange.response.body


async def measure(count: int, kind: str) -> None:
    """Print the bytes retained per exchange."""
    traffic = {"orders": orders, "steps": steps}[kind]
    client = Client(0)
    server = await asyncio.start_server(client.serve, "127.0.0.1", 0)
    asked = server.sockets[0].getsockname()[1]
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.bench.memory", "record", folder]
        with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as recorder:
            assert recorder.stdin is not None
            assert recorder.stdout is not None
            client.port, sizes = int(recorder.stdout.readline()), list[int]()
            for numbers in (range(count // 5), range(count // 5, count)):
                await client.ask(traffic(numbers), asked)
                print("now", file=recorder.stdin, flush=True)
                sizes.append(int(recorder.stdout.readline()))
            recorder.stdin.close()
            kept = (sizes[1] - sizes[0]) / (count - count // 5)
            print(f"{count:,} {kind}: {sizes[1] / 1e6:.1f} MB resident, {kept:,.0f} B kept each")
            if kind == "orders":
                name = f"memory kept of a finished exchange, of {count:,}"
                target(name, kept / 1000, "KB", most=1)
    server.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        run_event_loop(recording(Path(sys.argv[2])))
    else:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else EXCHANGES
        asyncio.run(measure(count, "orders"))
        asyncio.run(measure(count // 10, "steps"))
