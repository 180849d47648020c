"""What recording keeps in memory of exchanges that are over.

    python -m tests.bench.memory [EXCHANGES]

A recording proxy as `stumble record` has it (Watch, Writer with redaction) runs in a process of
its own; a client sends it requests of 1 KB, each with another order in it, and gets 1 KB. The
growth of its resident memory is taken between the first tenth and the end, after its garbage
was collected, and divided by the exchanges in between.
"""

import asyncio
import gc
import itertools
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from recorder.loop import run
from recorder.proxy import proxy
from tests.bench.proxy import ANSWER
from traces.conversation import Watch
from traces.model import Trajectory
from traces.tape import Writer
from traces.taps import Taps

EXCHANGES = 10_000


def resident() -> int:
    """Bytes of this process that are in memory now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def recording(folder: Path) -> None:
    """Listen until standard input ends; print resident bytes for each line that comes."""
    with Writer(
        folder / "a.tape", Trajectory(id="r", recorded_at=0.0), secrets=["s3cr3t-value"]
    ) as tape:
        async with proxy(
            Taps((Watch(), tape)),
            confdir=folder,
            began=time.monotonic(),
            seqs=itertools.count(),
        ) as listening:
            print(listening.port, flush=True)
            while await asyncio.to_thread(sys.stdin.readline):
                print(resident(), flush=True)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server of ANSWER, whatever it is asked."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        await reader.readexactly(int(head.partition(b"ontent-Length: ")[2].split(b"\r")[0]))
        writer.write(ANSWER)


async def ask(port: int, server: int, numbers: range) -> None:
    """One request after the other on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in numbers:
        body = (b'{"order": %d, "note": "' % number).ljust(1022, b"x") + b'"}'
        head = f"POST http://127.0.0.1:{server}/orders/{number} HTTP/1.1\r\nHost: h\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(1024)
    writer.close()


async def measure(count: int) -> None:
    """Print bytes kept per exchange."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    asked = server.sockets[0].getsockname()[1]
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.bench.memory", "record", folder]
        with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as recorder:
            assert recorder.stdin is not None
            assert recorder.stdout is not None
            port, sizes = int(recorder.stdout.readline()), list[int]()
            for numbers in (range(count // 10), range(count // 10, count)):
                await ask(port, asked, numbers)
                print("now", file=recorder.stdin, flush=True)
                sizes.append(int(recorder.stdout.readline()))
            recorder.stdin.close()
            kept = (sizes[1] - sizes[0]) / (count - count // 10)
            print(f"{count:,} exchanges: {sizes[1] / 1e6:.1f} MB resident, {kept:,.0f} B kept each")
    server.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        run(recording(Path(sys.argv[2])))
    else:
        asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else EXCHANGES))
