"""Clients that request every recording once, over a number of connections, and check each
answer.
"""

import asyncio
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.bench.performer import tunnel
from tests.bench.recordings import HEADERS, HOST, PATHS, answered, asked

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_LAST = b"\r\n0\r\n\r\n"
LIMIT = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """The bytes of a request, and the expected answer."""

    request: bytes
    body: bytes
    """The full body of the answer."""
    said: bytes
    """A part unique to this answer, for a replayer that generates its own bodies."""

    def is_answered(self, body: bytes, *, exactly: bool) -> bool:
        return body == self.body if exactly else self.said in body


def asks(kind: str, numbers: Iterable[int], *, target: str) -> tuple[Asks, ...]:
    """Return requests for these recordings; `target` precedes the path in the request line."""
    head = f"POST {target}{PATHS[kind]} HTTP/1.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in HEADERS)
    out = []
    for number in numbers:
        body = asked(kind, number)
        request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        said = b"answer %07d:" % number
        out.append(Asks(request=request, body=answered(kind, number), said=said))
    return tuple(out)


def body_of(got: bytes) -> bytes | None:
    """Return the body of an answer; None if it is incomplete."""
    end = got.find(b"\r\n\r\n")
    if end < 0:
        return None
    length = _LENGTH.search(got, 0, end + 2)
    if length is None:
        return got[end + 4 :] if got.endswith(_LAST) else None
    return got[end + 4 :] if len(got) >= end + 4 + int(length[1]) else None


class _Asking(asyncio.Protocol):
    """One connection, with one request in flight."""

    def __init__(self, left: Iterator[Asks], exactly: bool) -> None:
        self.left, self.exactly = left, exactly
        self.over = asyncio.get_running_loop().create_future()
        self.got = b""
        self.answers = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def next(self) -> None:
        """Send the next request that no connection has sent yet."""
        asked = next(self.left, None)
        if asked is None:
            self.over.set_result(None)
            return
        self.asked = asked
        self.transport.write(asked.request)

    def data_received(self, data: bytes) -> None:
        self.got = got = self.got + data if self.got else data
        if (body := body_of(got)) is None:
            return
        assert self.asked.is_answered(body, exactly=self.exactly), got
        self.got = b""
        self.answers += 1
        self.next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_exception(exc or ConnectionResetError("a replayer hung up"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """The time that the answers took."""

    answers: int
    seconds: float
    asking: float
    """Processor time of the client in seconds."""


async def crowd(
    port: int,
    wanted: Iterable[Asks],
    connections: int,
    *,
    ca: Path | None = None,
    exactly: bool = True,
    begin: Callable[[], object] = lambda: None,
) -> Took:
    """Request all answers, over connections opened before the first request."""
    loop, left = asyncio.get_running_loop(), iter(wanted)
    tls = None if ca is None else ssl.create_default_context(cafile=ca)
    asking = [
        (
            await loop.create_connection(
                lambda: _Asking(left, exactly),
                sock=await asyncio.to_thread(tunnel, port, ca is not None),
                ssl=tls,
                server_hostname=HOST if tls else None,
            )
        )[1]
        for _ in range(connections)
    ]
    begin()
    began, used = time.perf_counter(), time.process_time()
    for each in asking:
        each.next()
    async with asyncio.timeout(LIMIT):
        await asyncio.gather(*(each.over for each in asking))
    took = Took(
        answers=sum(each.answers for each in asking),
        seconds=time.perf_counter() - began,
        asking=time.process_time() - used,
    )
    for each in asking:
        each.transport.abort()
    return took


def alone(port: int, wanted: Iterable[Asks]) -> tuple[float, ...]:
    """Return the seconds of each answer, requested sequentially on one blocking connection."""
    waits = []
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as end:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for asked in wanted:
            began = time.perf_counter()
            end.sendall(asked.request)
            got = end.recv(1 << 16)
            while (body := body_of(got)) is None:
                got += end.recv(1 << 16)
            waits.append(time.perf_counter() - began)
            assert asked.is_answered(body, exactly=True), got
    return tuple(waits)
