"""Large bodies pass in pieces: what is not yet taken is not read, and no answer is kept whole."""

import asyncio
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from recorder.event_loop import run_event_loop
from tests.support.peak_memory import read_peak_memory
from tests.support.servers.raw_servers import (
    Notes,
    curl,
    recording,
    serving,
)
from traces.conversation.tracker import ConversationTap
from traces.model import Trajectory
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

MB = 1 << 20
PIECE = Random(1).randbytes(MB)


def peak() -> int:
    """MB."""
    return read_peak_memory() // MB


def head(size: int, *, chunked: bool) -> bytes:
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % (size * MB)
    return b"HTTP/1.1 200 OK\r\n%s\r\n\r\n" % length


async def download(tape: Path, size: int, *, chunked: bool) -> int:
    """By how many MB the process grew while an answer of `size` MB passed onto a tape."""

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(head(size, chunked=chunked))
        for _ in range(size):
            writer.write(b"%x\r\n%b\r\n" % (MB, PIECE) if chunked else PIECE)
            await writer.drain()
        writer.write(b"0\r\n\r\n" if chunked else b"")

    with TapeWriter(tape, Trajectory(id="t", recorded_at=0.0)) as writer:
        async with serving(answer) as server, recording(ConversationTap(), writer) as proxy:
            url = f"http://localhost:{server.port}/"
            before = peak()
            ask = ("--max-time", "60", "-o", "/dev/null", "-w", "%{size_download}")
            assert await curl(*ask, url, through=proxy) == (0, b"%d" % (size * MB))
    return peak() - before


def grown(tape: Path, kind: str) -> int:
    """`download` of 100 MB in a process of its own."""
    code = (
        "from pathlib import Path\nfrom recorder.event_loop import run_event_loop\n"
        "from tests.e2e.record.test_recorder_large import warm_and_measure\n"
        f"measured = warm_and_measure(Path({str(tape)!r}), chunked={kind == 'chunked'})\n"
        "print(run_event_loop(measured))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=240, check=True
    )
    return int(done.stdout)


async def warm_and_measure(tape: Path, *, chunked: bool) -> int:
    await download(tape.with_suffix(".warm"), 2, chunked=chunked)
    return await download(tape, 100, chunked=chunked)


@pytest.mark.parametrize("kind", ["length", "chunked"])
def test_an_answer_of_100_mb_is_never_in_the_memory(kind: str, tmp_path: Path) -> None:
    tape = tmp_path / "a.tape"
    assert grown(tape, kind) < 64
    for exchange in read_tape(tape).exchanges:
        assert exchange.error is None
        assert exchange.response is not None
        assert exchange.response.ended is not None
        assert exchange.response.body == PIECE * 100


def test_what_the_agent_does_not_read_is_not_read_from_the_server() -> None:
    sent = 0
    stalled = asyncio.Event()

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(head(64, chunked=False))
        for _ in range(64):
            writer.write(PIECE)
            sent += 1
            try:
                async with asyncio.timeout(2):
                    await writer.drain()
            except TimeoutError:
                stalled.set()
                await writer.drain()

    async def main() -> None:
        notes = Notes()
        async with serving(answer) as server, recording(notes) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, limit=1 << 16)
            writer.write(b"GET http://localhost:%d/ HTTP/1.1\r\nHost: l\r\n\r\n" % server.port)
            await stalled.wait()
            before = sent
            got = len(await reader.readuntil(b"\r\n\r\n")) * 0
            while got < 64 * MB:
                got += len(await reader.read(1 << 20))
            writer.close()
            exchange = await notes.only()
        assert before < 32
        assert exchange.error is None

    run_event_loop(main())
