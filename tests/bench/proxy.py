"""The recording proxy beside bare mitmdump of the same version, on 127.0.0.1.

    python tests/bench/proxy.py [ROUNDS]

One client sends 1 KB and gets 1 KB, one request after the other on one kept connection, plain
HTTP; server and proxies are processes of their own. A round sends the same number of requests
through each proxy, so that a busy machine is busy for all. CPU is that of the proxy's process,
all threads, as the kernel counts it. The time to the first byte of an event stream is taken on
a warm connection (the server's own handshake is not in it), once over HTTP and once over HTTPS.
"""

import asyncio
import itertools
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from recorder.loop import run  # noqa: E402
from recorder.proxy import proxy  # noqa: E402
from tests.recorder_wire import server_ca, server_tls  # noqa: E402
from traces.model import Trajectory  # noqa: E402
from traces.tape import Writer  # noqa: E402
from traces.taps import Taps  # noqa: E402

ROUNDS = 9
REQUESTS = 500
STREAMS = 40
BODY = b"x" * 1024
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n" + BODY
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b"data: event\n\n"


def main(rounds: int) -> None:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        home = Path(folder)
        (plain, secure), _ = stack.enter_context(started("server", folder))
        proxies = {
            name: stack.enter_context(started(name, folder))
            for name in ("mitmdump", "ours", "recorder")
        }
        cpu = {name: list[float]() for name in proxies}
        wall = {name: list[float]() for name in proxies}
        for _ in range(rounds):
            for name, ((port, *_), process) in proxies.items():
                before, start = used(process.pid), time.perf_counter()
                ask(port, plain, REQUESTS)
                wall[name].append((time.perf_counter() - start) / REQUESTS * 1e3)
                cpu[name].append((used(process.pid) - before) / REQUESTS * 1e3)
        print(f"{rounds} rounds of {REQUESTS} requests of 1 KB each\n")
        print("proxy                         CPU ms/request   ratio (spread)       wall ms")
        for name, label in (
            ("mitmdump", "mitmdump"),
            ("ours", "ours, no tape"),
            ("recorder", "ours, recording to a tape"),
        ):
            ratios = [ours / bare for ours, bare in zip(cpu[name], cpu["mitmdump"], strict=True)]
            print(
                f"{label:28} {statistics.median(cpu[name]):14.3f}"
                f" {statistics.median(ratios):9.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
                f" {statistics.median(wall[name]):12.3f}"
            )
        print(f"\ntime to the first byte of a stream, ms, medians of {STREAMS}\n")
        port = proxies["recorder"][0][0]
        ca = ssl.create_default_context(cafile=server_ca_of(home))
        ours = ssl.create_default_context(cafile=home / "recorder" / "mitmproxy-ca-cert.pem")
        for scheme, direct, through in (
            ("http", lambda: dial(plain), lambda: dial(port)),
            ("https", lambda: dial(secure, ca), lambda: dial(port, ours, tunnel=secure)),
        ):
            target = f"http://127.0.0.1:{plain}" if scheme == "http" else ""
            first = [(first_byte(direct, ""), first_byte(through, target)) for _ in range(STREAMS)]
            alone, proxied = (statistics.median(each) for each in zip(*first, strict=True))
            print(f"{scheme:6} direct {alone:6.2f}   ours {proxied:6.2f}   {proxied - alone:+.2f}")


@contextmanager
def started(name: str, folder: str) -> Iterator[tuple[list[int], subprocess.Popen[str]]]:
    """A process of this file (or mitmdump) and the ports it listens on."""
    command = [sys.executable, __file__, name, folder]
    ports: list[int] = []
    if name == "mitmdump":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports = [free.getsockname()[1]]
        command = [str(Path(sys.executable).with_name("mitmdump")), "-q", "-p", str(ports[0])]
        command += ["--listen-host", "127.0.0.1", "--set", f"confdir={folder}/mitmdump"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ports = ports or [int(word) for word in process.stdout.readline().split()]
            answering(ports[0])
            yield ports, process
        finally:
            process.terminate()


def answering(port: int) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def used(pid: int) -> float:
    """Seconds of CPU that a process has used, to the microsecond."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def ask(port: int, server: int, times: int) -> None:
    """Send requests through a proxy, one after the other."""
    head = f"POST http://127.0.0.1:{server}/v1 HTTP/1.1\r\nHost: 127.0.0.1:{server}\r\n"
    request = f"{head}Content-Type: text/plain\r\nContent-Length: 1024\r\n\r\n".encode() + BODY
    with dial(port) as connection:
        for _ in range(times):
            connection.sendall(request)
            got = 0
            while got < len(ANSWER):
                got += len(connection.recv(65536))


def dial(
    port: int, tls: ssl.SSLContext | None = None, *, tunnel: int | None = None
) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tunnel is not None:
        connection.sendall(f"CONNECT localhost:{tunnel} HTTP/1.1\r\n\r\n".encode())
        while b"\r\n\r\n" not in connection.recv(4096):
            pass
    return connection if tls is None else tls.wrap_socket(connection, server_hostname="localhost")


def first_byte(connect: Callable[[], socket.socket], target: str) -> float:
    """Milliseconds from a request to the first event, on a connection that has had another."""
    with connect() as connection:
        for path in ("warm", "stream"):
            start = time.perf_counter()
            request = f"GET {target}/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
            connection.sendall(request.encode())
            got = b""
            wanted = EVENT if path == "stream" else BODY
            while wanted not in got:
                got += connection.recv(65536)
        return (time.perf_counter() - start) * 1e3


class Answering(asyncio.Protocol):
    """Answers a whole request with 1 KB, and one for /stream with an event stream."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.got = cast(asyncio.Transport, transport), b""

    def data_received(self, data: bytes) -> None:
        self.got += data
        if self.got.startswith(b"POST") and not self.got.endswith(BODY):
            return
        if b" /stream " in self.got:
            self.transport.write(STREAM + b"%x\r\n%s\r\n" % (len(EVENT), EVENT))
        elif self.got.endswith((b"\r\n\r\n", BODY)):
            self.transport.write(ANSWER)
            self.got = b""


async def serve(folder: Path) -> None:
    loop = asyncio.get_running_loop()
    plain = await loop.create_server(Answering, "127.0.0.1", 0)
    secure = await loop.create_server(Answering, "127.0.0.1", 0, ssl=server_tls())
    (folder / "server.pem").write_bytes(server_ca().read_bytes())
    print(*(each.sockets[0].getsockname()[1] for each in (plain, secure)), flush=True)
    await asyncio.Event().wait()


def server_ca_of(folder: Path) -> Path:
    return folder / "server.pem"


async def listen(folder: Path, *, tape: bool) -> None:
    trajectory = Trajectory(id="bench", recorded_at=time.time())
    with Writer(folder / "bench.tape", trajectory) if tape else nullcontext() as writer:
        async with proxy(
            Taps([writer] if writer is not None else []),
            confdir=folder / ("recorder" if tape else "ours"),
            began=time.monotonic(),
            seqs=itertools.count(1),
            upstream_ca=server_ca_of(folder),
        ) as here:
            print(here.port, flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["server", folder]:
            run(serve(Path(folder)))
        case [("ours" | "recorder") as name, folder]:
            run(listen(Path(folder), tape=name == "recorder"))
        case rounds:
            main(int(rounds[0]) if rounds else ROUNDS)
