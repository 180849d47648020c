"""Accuracy of the gaps between chunks with `--speed 1`.

    python -m tests.bench.pace [rounds]

A tape of streams with seeded gaps of 2 to 40 ms is played by ConversationTap and TapePlayer on the
replay server, over HTTP and HTTPS, to an agent in a separate process that notes when each chunk
arrived. The error of a gap is the observed gap minus the recorded one. The wake-up latency of a
program that only sleeps is printed as well: it is the lower bound on this machine.
"""

import asyncio
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import accumulate, count, pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import uvloop

from recorder.proxy.server import ProxyServer, RunListener
from replay.player import PlaybackOptions, TapePlayer
from tests.bench.target import target
from traces.conversation.tracker import ConversationTap
from traces.model import Chunk, Exchange, Request, Response, Trajectory
from traces.tape.reader import Tape
from traces.taps import TapChain

HOST, EVENTS, EVENT = "model.example", 100, b"data: x\n\n"
MOST = 1.0
"""Milliseconds."""


def gaps() -> tuple[float, ...]:
    chance = Random(7)
    return tuple(chance.uniform(0.002, 0.04) for _ in range(EVENTS))


def recording(rounds: int) -> Tape:
    """Return a tape with the same stream for each path and round."""
    times = tuple(accumulate(gaps()))
    answer = Response(
        status=200,
        headers=(("content-type", "text/event-stream"), ("transfer-encoding", "chunked")),
        chunks=tuple(Chunk(at=at, data=EVENT) for at in times),
        ended=times[-1],
    )
    asked = [(scheme, n) for scheme in ("http", "https") for n in range(rounds)]
    exchanges = tuple(
        Exchange(
            seq=seq,
            request=Request(method="GET", url=f"{scheme}://{HOST}/{n}"),
            response=answer,
        )
        for seq, (scheme, n) in enumerate(asked)
    )
    trajectory = Trajectory(id="bench", recorded_at=0.0)
    return Tape(path=Path("bench.tape"), trajectory=trajectory, exchanges=exchanges, spans={})


def came(end: socket.socket) -> Iterator[float]:
    """Yield the arrival time of each event; several may arrive in one chunk."""
    got = b""
    while not got.endswith(b"0\r\n\r\n"):
        got += end.recv(1 << 16)
        at = time.monotonic()
        *whole, got = got.split(EVENT)
        yield from (at for _ in whole)


def listen(port: int, rounds: int, ca: str) -> None:
    """Request each stream, and print the error of each gap in milliseconds."""
    trust = ssl.create_default_context(cafile=ca) if ca else None
    for n in range(rounds):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
            origin = b"http://" + HOST.encode()
            end = line
            if trust is not None:
                line.sendall(f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode())
                line.recv(1000)
                end, origin = trust.wrap_socket(line, server_hostname=HOST), b""
            end.sendall(b"GET %b/%d HTTP/1.1\r\nHost: %b\r\n\r\n" % (origin, n, HOST.encode()))
            seen = [after - before for before, after in pairwise(came(end))]
        for had, want in zip(seen, gaps()[1:], strict=True):
            print(abs(had - want) * 1000, flush=True)


async def errors(stage: RunListener, rounds: int, ca: str) -> list[float]:
    words = ("-m", "tests.bench.pace", "listen", str(stage.port), str(rounds), ca)
    process = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=subprocess.PIPE)
    out, _ = await process.communicate()
    return sorted(map(float, out.split()))


def asleep() -> list[float]:
    """Return the excess of a plain sleep in milliseconds."""
    late = []
    for gap in gaps():
        began = time.monotonic()
        time.sleep(gap)
        late.append((time.monotonic() - began - gap) * 1000)
    return sorted(late)


async def main(rounds: int) -> None:
    bare = [late for _ in range(rounds) for late in asleep()]
    high = sorted(bare)[len(bare) * 99 // 100]
    print(f"a bare sleep is {high:.3f} ms too long at the 99th percentile")
    with TemporaryDirectory() as folder:
        performer, watch = ProxyServer(confdir=Path(folder)), ConversationTap()
        taps = TapChain(
            [watch, TapePlayer(recording(rounds), watch, options=PlaybackOptions(speed=1))]
        )
        async with performer.create_listener(taps, began=time.monotonic(), seqs=count(1)) as stage:
            for name, ca in (("HTTP", ""), ("HTTPS", str(Path(folder, "mitmproxy-ca-cert.pem")))):
                wrong = await errors(stage, rounds, ca)
                middle, worst = wrong[len(wrong) // 2], wrong[-1]
                print(f"{name}: {len(wrong)} gaps off by {middle:.3f} ms at the median, ", end="")
                print(f"{worst:.3f} ms at most")
                high = wrong[len(wrong) * 99 // 100]
                target(f"gap at `--speed 1`, {name}, 99th percentile", high, "ms off", most=MOST)


if __name__ == "__main__":
    if sys.argv[1:2] == ["listen"]:
        listen(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        uvloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
