"""Clients of the proxy benchmark: sequential, fifty concurrent, and one that reads a stream."""

import asyncio
import socket
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.bench.traffic import SECRETS, make_repeated_body

REPEATED = make_repeated_body(1_000)
HEADERS = (
    "Host: 127.0.0.1\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
    f"User-Agent: bench/1\r\nAuthorization: Bearer {SECRETS[0]}\r\n"
)
EVENT_ENDS = b"\n\n"
CHAT_PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How to reach a server: directly, through a proxy, over TLS or not."""

    server: int
    port: int | None = None
    """Port of the proxy."""
    trusted: Path | None = None
    """The CA, as PEM, that must have signed the other side's certificate; None disables TLS."""

    def dial(self) -> socket.socket:
        """Return a connection that is ready for a request."""
        connection = socket.create_connection(("127.0.0.1", self.port or self.server), timeout=60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.trusted is None:
            return connection
        if self.port is not None:
            connection.sendall(f"CONNECT localhost:{self.server} HTTP/1.1\r\n\r\n".encode())
            while b"\r\n\r\n" not in connection.recv(4096):
                pass
        tls = ssl.create_default_context(cafile=self.trusted)
        return tls.wrap_socket(connection, server_hostname="localhost")

    def target(self, path: str) -> str:
        """Return the target of a request line."""
        absolute = self.port is not None and self.trusted is None
        return f"http://127.0.0.1:{self.server}{path}" if absolute else path

    def request(self, path: str, body: bytes = REPEATED) -> bytes:
        """Return a POST, of 1 KB unless a body is given."""
        head = f"POST {self.target(path)} HTTP/1.1\r\n{HEADERS}Content-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


class Client:
    """Sends requests sequentially on one connection."""

    def __init__(self, way: Way) -> None:
        self.way, self.connection = way, way.dial()

    def send_all(self, requests: Iterable[bytes]) -> int:
        """Send each when the one before it is answered; return their number."""
        count = 0
        for request in requests:
            self.send(request)
            count += 1
        return count

    def send(self, request: bytes) -> bytearray:
        """Return the body of the answer, which has a length.

        Raises:
            ConnectionError: the answer is not complete, or its status is not 200.
        """
        self.connection.sendall(request)
        got = b""
        while (end := got.find(b"\r\n\r\n")) < 0:
            got += self._check_received(self.connection.recv(65536))
        if not got.startswith(b"HTTP/1.1 200 "):
            raise ConnectionError(got[:500].decode(errors="replace"))
        length = got[:end].lower().partition(b"content-length: ")[2].partition(b"\r")[0]
        body, filled = bytearray(int(length)), len(got) - end - 4
        body[:filled] = got[end + 4 :]
        view = memoryview(body)
        while filled < len(body):
            filled += self._check_received(self.connection.recv_into(view[filled:]))
        return body

    @staticmethod
    def _check_received[Received: (bytes, int)](received: Received) -> Received:
        if not received:
            raise ConnectionError("the connection ended within an answer")
        return received

    def events(self, count: int, gap: float) -> tuple[float, list[float]]:
        """Return milliseconds to the first byte of a stream, and the latency of each event."""
        began = time.monotonic()
        path = self.way.target(f"/events/{count}/{gap}")
        self.connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        first, rest, delays = 0.0, b"", list[float]()
        while len(delays) < count:
            rest += self.connection.recv(65536)
            now = time.monotonic()
            *events, rest = rest.split(EVENT_ENDS)
            first = first or (now - began if events else 0.0)
            delays += [(now - float(event.rpartition(b"data: ")[2])) * 1e3 for event in events]
        while not rest.endswith(b"0\r\n\r\n"):
            rest += self.connection.recv(65536)
        return first * 1e3, delays

    def close(self) -> None:
        self.connection.close()


class _Asking(asyncio.Protocol):
    """One of many connections, each with one request in flight."""

    def __init__(self, request: bytes, size: int, left: list[int]) -> None:
        self.request, self.size, self.left = request, size, left
        self.over = asyncio.get_running_loop().create_future()
        self.got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.next()

    def next(self) -> None:
        if self.left[0] <= 0:
            self.over.set_result(None)
            self.transport.close()
            return
        self.left[0] -= 1
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.got += data
        head, end, body = self.got.partition(b"\r\n\r\n")
        if end and len(body) >= self.size:
            self.got = b""
            self.next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_exception(exc or ConnectionResetError("a proxy hung up"))


async def crowd(way: Way, connections: int, times: int) -> float:
    """Return the rate of plain-text requests of 1 KB per second, over concurrent connections."""
    loop, left = asyncio.get_running_loop(), [times]
    request = way.request("/1000")
    began = time.perf_counter()
    asking = [
        (
            await loop.create_connection(
                lambda: _Asking(request, 1_000, left), "127.0.0.1", way.port or way.server
            )
        )[1]
        for _ in range(connections)
    ]
    async with asyncio.timeout(120):
        await asyncio.gather(*(each.over for each in asking))
    return times / (time.perf_counter() - began)
