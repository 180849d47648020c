"""Real endpoints for the recorder's tests: raw servers, a test CA, a tap that notes everything."""

import asyncio
import itertools
import socket
import ssl
import struct
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from mitmproxy.certs import CertStore

from recorder.proxy.corporate_proxy import ProxySettings
from recorder.proxy.recording import RecordingProxy, start_recording_proxy
from recorder.proxy.route import DIRECT_ROUTE, UpstreamRoute
from traces.model import Chunk, Exchange
from traces.taps import TapChain

BOUND = 20.0
"""Timeout of a test in seconds."""

_SIGNING = threading.Lock()

type Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Notes:
    """A tap that notes all its events."""

    asked: list[Exchange] = field(default_factory=list)
    heads: list[Exchange] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    over: list[Exchange] = field(default_factory=list)

    def request(self, exchange: Exchange) -> Exchange:
        self.asked.append(exchange)
        return exchange

    def head(self, exchange: Exchange) -> None:
        self.heads.append(exchange)

    def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        self.chunks.append(chunk)

    def done(self, exchange: Exchange) -> None:
        self.over.append(exchange)

    async def only(self) -> Exchange:
        """Return the one exchange, once it is finished."""
        async with asyncio.timeout(BOUND):
            while not self.over:
                await asyncio.sleep(0.001)
        (exchange,) = self.over
        return exchange


@dataclass
class Server:
    """A listening server, its received requests, and its number of connections."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    accepts: int = 0
    names: list[str | None] = field(default_factory=list)
    """The server names that TLS clients requested."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a connection has ended."""


@cache
def confdir() -> Path:
    """Return the folder of the proxy's CA, one for the entire test run."""
    return Path(mkdtemp(prefix="recorder-ca-"))


@cache
def _authority() -> tuple[Path, CertStore]:
    folder = Path(mkdtemp(prefix="server-ca-"))
    return folder / "theirs-ca-cert.pem", CertStore.from_store(folder, "theirs", 2048)


def server_ca() -> Path:
    """Return the certificate of the CA that signs the test servers' certificates."""
    return _authority()[0]


@cache
def server_tls(name: str = "localhost", *, h2: bool = False) -> ssl.SSLContext:
    """Return the TLS context of a server called `name` (and 127.0.0.1)."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(write_server_pem(name))
    if h2:
        context.set_alpn_protocols(["h2"])
    return context


def write_server_pem(name: str) -> Path:
    """Write the key and the certificate of a server to a file; several threads may ask at once."""
    with _SIGNING:
        path, store = _authority()
        entry = store.get_cert(name, [x509.DNSName(name), x509.DNSName("localhost")])
    pem = Path(mkdtemp(dir=path.parent), f"{name}.pem")
    key = entry.privatekey.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    pem.write_bytes(key + entry.cert.to_pem())
    return pem


@asynccontextmanager
async def serving(answer: Answer, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Run a server that calls `answer` with each request (head and body) and the writer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            request = await read_message(reader)
            heard.requests.append(request)
            await answer(request, writer)

    async with listening(serve, tls=tls) as heard:
        yield heard


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    *,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Server]:
    """Run a server that calls `serve` with each connection, and closes it then."""
    heard, writers = Server(port=0), list[asyncio.StreamWriter]()
    if tls is not None:
        tls.sni_callback = lambda _, name, __: heard.names.append(name)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.accepts += 1
        writers.append(writer)
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the other end has gone, which is how these connections end
        finally:
            heard.gone.set()
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    heard.port = server.sockets[0].getsockname()[1]
    try:
        yield heard
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(*(each.wait_closed() for each in writers), return_exceptions=True)


@contextmanager
def wanting_certificates(*, h2: bool = False, trusted: Path | None = None) -> Iterator[int]:
    """Run a server that refuses clients without a certificate, with an alert; yield its port.

    `trusted` is the certificate that it accepts.

    asyncio's TLS drops that alert, so this one has threads.
    """
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cafile=str(trusted or server_ca())
    )
    context.load_cert_chain(write_server_pem("a.example"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"] if h2 else ["http/1.1"])
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                end, _ = listening.accept()
            except OSError:
                return  # the test is over
            with end.dup() as kept, end, suppress(OSError):
                with suppress(OSError), context.wrap_socket(end, server_side=True) as tls:
                    tls.recv(1 << 16)
                    tls.sendall(
                        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
                    )
                # To close with unread data would reset the connection, and the alert might be lost.
                kept.shutdown(socket.SHUT_WR)
                kept.settimeout(10)
                while kept.recv(1 << 16):
                    pass

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        acceptor.join(BOUND)


async def read_message(reader: asyncio.StreamReader) -> bytes:
    """Read a head and a body of its content-length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    return head + await reader.readexactly(length)


def says(raw: bytes) -> Answer:
    """Answer every request with these bytes."""

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return answer


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with RST, unless it has ended."""
    if writer.is_closing():
        return
    number = writer.get_extra_info("socket").fileno()
    with socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def recording(
    *taps: object,
    hosts: Mapping[str, tuple[str, int]] = {},
    trusting: bool = True,
    way: ProxySettings = DIRECT_ROUTE.proxies,
    upstream_ca: Path | None = None,
    insecure: frozenset[str] = frozenset(),
    client_cert: Path | None = None,
) -> AsyncIterator[RecordingProxy]:
    """Run the proxy under test, which trusts the test servers."""
    async with (
        asyncio.timeout(BOUND),
        start_recording_proxy(
            TapChain(taps),
            confdir=confdir(),
            began=time.monotonic(),
            seqs=itertools.count(1),
            upstream=UpstreamRoute(
                hosts=hosts,
                ca_file=upstream_ca or (server_ca() if trusting else None),
                proxies=way,
                insecure=insecure,
                client_cert=client_cert,
            ),
        ) as here,
    ):
        yield here


async def curl(*arguments: str, through: RecordingProxy | None = None) -> tuple[int, bytes]:
    """Return the exit code and the output of curl."""
    options = ["-sS", "-N", "--http1.1", "--max-time", "10", "--cacert"]
    if through is None:
        options += [str(server_ca()), "--noproxy", "*"]
    else:
        options += [str(through.certificate), "--noproxy", "", "--proxy", through.url]
    process = await asyncio.create_subprocess_exec(
        "curl",
        *options,
        *arguments,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out


async def converse(port: int, request: bytes) -> tuple[bytes, str]:
    """Return all data from a port, and how the connection ended: `fin` or `reset`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    got = b""
    try:
        while data := await reader.read(65536):
            got += data
    except ConnectionResetError:
        return got, "reset"
    finally:
        writer.close()
    return got, "fin"
