"""Requests per second of the replay server, with a tap that answers 1.5 KB immediately.

    python -m tests.bench.performer [seconds]

The replay server runs here on uvloop, the agents in a separate process: keep-alive connections,
each with one request in flight, over HTTP (proxy form) and HTTPS (CONNECT). `cpu` is the server's
own processor time per request.
"""

import asyncio
import json
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from recorder.proxy.server import ProxyServer, RunListener
from traces.model import Chunk, Exchange, Response
from traces.taps import TapChain

HOST = "model.example"
BODY = b"x" * 1500
REQUEST = (
    b"POST %b/v1/chat HTTP/1.1\r\nHost: model.example\r\nAccept: */*\r\n"
    b"Content-Type: application/json\r\nContent-Length: 2000\r\n\r\n" + b"q" * 2000
)


class Answers:
    """Gives every request the same answer."""

    def request(self, exchange: Exchange) -> Exchange:
        at = exchange.started
        answer = Response(
            status=200,
            reason="OK",
            headers=(
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(BODY))),
                ("X-Request-Id", "req_0123456789"),
            ),
            chunks=(Chunk(at=at, data=BODY),),
            at=at,
            ended=at,
        )
        return replace(exchange, response=answer, answered_by="recorded")


class Agent(asyncio.Protocol):
    """Sends a request, waits for as many bytes as the first answer had, sends the next."""

    def __init__(self, request: bytes, waits: list[float]) -> None:
        self._request, self._waits = request, waits
        self._size = self._got = 0
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._got, self._sent = 0, time.perf_counter()
        self._transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._got += len(data)
        if not self._size:
            head, _, _ = data.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            self._size = len(head) + 4 + len(BODY)
        if self._got == self._size:
            self._waits.append(time.perf_counter() - self._sent)
            self._ask()


def tunnel(port: int, connect: bool) -> socket.socket:
    end = socket.create_connection(("127.0.0.1", port), timeout=10)
    if connect:
        end.sendall(f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode())
        while not end.recv(1000).endswith(b"\r\n\r\n"):
            pass
    end.setblocking(False)
    return end


async def load(port: int, agents: int, seconds: float, ca: str) -> dict[str, float]:
    loop, waits = asyncio.get_running_loop(), list[float]()
    context = ssl.create_default_context(cafile=ca) if ca else None
    request = REQUEST % (b"" if ca else b"http://" + HOST.encode())
    for _ in range(agents):
        await loop.create_connection(
            lambda: Agent(request, waits),
            sock=tunnel(port, bool(ca)),
            ssl=context,
            server_hostname=HOST if ca else None,
        )
    await asyncio.sleep(0.3)
    waits.clear()
    await asyncio.sleep(seconds)
    waits.sort()
    return {
        "n": len(waits),
        "p50": waits[len(waits) // 2] * 1000,
        "p99": waits[len(waits) * 99 // 100] * 1000,
    }


@asynccontextmanager
async def agents(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "load", *words, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def row(stage: RunListener, many: int, seconds: float, ca: str) -> str:
    async with agents(str(stage.port), str(many), str(seconds), ca) as process:
        cpu, seq = time.process_time(), next(stage.seqs)
        out, _ = await asyncio.wait_for(process.communicate(), seconds + 30)
        cpu, n = time.process_time() - cpu, next(stage.seqs) - seq - 1
    document = json.loads(out)
    name = f"{'https' if ca else 'http'}, {many} connections"
    return (
        f"{name:24} {document['n'] / seconds:9.0f} req/s   p50 {document['p50']:7.3f} ms   "
        f"p99 {document['p99']:7.3f} ms   cpu {cpu / n * 1e6:6.1f} us"
    )


async def main(seconds: float) -> None:
    with TemporaryDirectory() as folder:
        performer = ProxyServer(confdir=Path(folder))
        ca = str(Path(folder, "mitmproxy-ca-cert.pem"))
        taps = TapChain([Answers()])
        async with performer.create_listener(taps, began=time.monotonic(), seqs=count(1)) as stage:
            for cert in ("", ca):
                for many in (1, 50):
                    print(await row(stage, many, seconds, cert), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["load"]:
        port, many, span, cert = sys.argv[2:]
        print(json.dumps(uvloop.run(load(int(port), int(many), float(span), cert))))
    else:
        uvloop.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0))
