"""A replay server in a separate thread, so that tests can talk to it with plain sockets."""

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import replace
from itertools import count
from pathlib import Path

import pytest
import uvloop

from recorder.proxy.server import ProxyServer, RunListener
from recorder.proxy.upstream import UpstreamClient
from traces.model import Chunk, Exchange, Headers, Response
from traces.taps import TapChain

WAIT = 20.0
"""Timeout of a test's socket in seconds."""

GET = b"GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n"
INSIDE = b"GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n"

plain_and_tls = pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])


class Script:
    """A tap that answers with `answer(exchange)` and notes the data that agents received."""

    def __init__(self, answer: Callable[[Exchange], Exchange] = lambda x: x) -> None:
        self._answer = answer
        self.asked: list[Exchange] = []
        self.heads: list[Exchange] = []
        self.chunks: list[Chunk] = []
        self.got: list[Exchange] = []

    def request(self, exchange: Exchange) -> Exchange:
        self.asked.append(exchange)
        return self._answer(exchange)

    def head(self, exchange: Exchange) -> None:
        self.heads.append(exchange)

    def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        self.chunks.append(chunk)

    def done(self, exchange: Exchange) -> None:
        self.got.append(exchange)


def say(
    *pieces: bytes,
    status: int = 200,
    headers: Headers = (("Content-Type", "text/plain"), ("Transfer-Encoding", "chunked")),
    gap: float = 0.0,
    error: str | None = None,
    trailers: Headers = (),
    version: str = "HTTP/1.1",
) -> Callable[[Exchange], Exchange]:
    """Answer with these chunks, the head immediately and then one chunk after each gap."""

    def answer(exchange: Exchange) -> Exchange:
        at = exchange.started
        chunks = tuple(Chunk(at=at + gap * n, data=data) for n, data in enumerate(pieces, 1))
        response = Response(
            status=status,
            reason="OK",
            headers=headers,
            chunks=chunks,
            trailers=trailers,
            version=version,
            at=at,
            ended=None if error else at + gap * len(pieces),
        )
        return replace(exchange, response=response, error=error, answered_by="recorded")

    return answer


def fail(error: str) -> Callable[[Exchange], Exchange]:
    """Give no answer at all."""
    return lambda exchange: replace(exchange, error=error, answered_by="recorded")


@contextmanager
def on_stage(
    performer: ProxyServer,
    *taps: object,
    upstream: Callable[[float], UpstreamClient] | None = None,
    hold: float = 60.0,
) -> Iterator[RunListener]:
    """Serve for the block; leaving it stops the server, and raises its exceptions."""
    ready = threading.Event()
    told: list[tuple[RunListener, asyncio.Event]] = []
    raised: list[BaseException] = []

    async def perform() -> None:
        began, over = time.monotonic(), asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(unforeseen)
        way = upstream(began) if upstream else None
        async with contextlib.AsyncExitStack() as stack:
            if isinstance(way, contextlib.AbstractAsyncContextManager):
                await stack.enter_async_context(way)
            stage = performer.create_listener(
                TapChain(taps), began=began, seqs=count(1), upstream=way, hold=hold
            )
            await stack.enter_async_context(stage)
            told.append((stage, over))
            ready.set()
            await over.wait()

    def unforeseen(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        raised.append(RuntimeError(context))

    def run() -> None:
        try:
            uvloop.run(perform())
        except BaseException as error:  # raised again in the thread of the test
            raised.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(WAIT)
        if told:
            yield told[0][0]
    finally:
        if told and thread.is_alive():
            stage, over = told[0]
            stage.loop.call_soon_threadsafe(over.set)
        thread.join(WAIT)
        assert not thread.is_alive()
    if raised:
        raise raised[0]


def dial(stage: RunListener) -> socket.socket:
    """Return a plain connection to the server."""
    return socket.create_connection(("127.0.0.1", stage.port), timeout=WAIT)


def trusting(confdir: Path, *alpn: str) -> ssl.SSLContext:
    """Return an agent's TLS context that trusts the server's CA."""
    context = ssl.create_default_context(cafile=confdir / "mitmproxy-ca-cert.pem")
    if alpn:
        context.set_alpn_protocols(alpn)
    return context


def secure(stage: RunListener, confdir: Path, host: str = "a.example") -> ssl.SSLSocket:
    """Return a connection through CONNECT and TLS that distinguishes a cut from a regular end."""
    end = dial(stage)
    end.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
    assert heard(end, b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
    name = host.strip("[]")
    return trusting(confdir).wrap_socket(end, server_hostname=name, suppress_ragged_eofs=False)


def heard(end: socket.socket, until: bytes) -> bytes:
    """Read up to and including these bytes."""
    data = b""
    while not data.endswith(until):
        piece = end.recv(1)
        assert piece, data
        data += piece
    return data


def rest(end: socket.socket) -> bytes:
    """Read until the end of the connection."""
    pieces = []
    while piece := end.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def reach(stage: RunListener, confdir: Path, tls: bool) -> tuple[socket.socket, bytes]:
    """Return a connection and the request to send on it."""
    return (secure(stage, confdir), INSIDE) if tls else (dial(stage), GET)


def ending(end: socket.socket) -> tuple[bytes, str]:
    """Read until the end of the connection; return the data and the kind of end."""
    data = b""
    while True:
        try:
            piece = end.recv(1 << 16)
        except ConnectionResetError:
            return data, "reset"
        except ssl.SSLEOFError:
            return data, "cut"
        if not piece:
            return data, "end"
        data += piece


def eventually(happened: Callable[[], object], seconds: float = WAIT) -> bool:
    """Return True as soon as the condition holds, False after so many seconds."""
    deadline = time.monotonic() + seconds
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.005)
    return bool(happened())
