"""Clients that ask for every recording once, over so many connections, and check each answer."""

import asyncio
import re
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tests.bench.performer import tunnel
from tests.bench.recordings import HEADERS, HOST, PATHS, asked

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_LAST = b"\r\n0\r\n\r\n"
LIMIT = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """What is asked: bytes of a request, and of its answer only."""

    request: bytes
    answer: bytes


def asks(kind: str, numbers: Iterable[int], *, target: str) -> tuple[Asks, ...]:
    """Requests for these recordings; `target` stands before the path in the request line."""
    head = f"POST {target}{PATHS[kind]} HTTP/1.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in HEADERS)
    out = []
    for number in numbers:
        body = asked(kind, number)
        request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        out.append(Asks(request=request, answer=b"answer %07d:" % number))
    return tuple(out)


class _Asking(asyncio.Protocol):
    """One connection, with one request under way."""

    def __init__(self, left: Iterator[Asks], waits: list[float]) -> None:
        self.left, self.waits = left, waits
        self.over = asyncio.get_running_loop().create_future()
        self.got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def next(self) -> None:
        """Ask for what nobody has asked for yet."""
        asked = next(self.left, None)
        if asked is None:
            self.over.set_result(None)
            return
        self.answer = asked.answer
        self.sent = time.perf_counter()
        self.transport.write(asked.request)

    def data_received(self, data: bytes) -> None:
        self.got = got = self.got + data if self.got else data
        end = got.find(b"\r\n\r\n")
        length = _LENGTH.search(got, 0, end) if end > 0 else None
        if not (got.endswith(_LAST) if length is None else len(got) >= end + 4 + int(length[1])):
            return
        self.waits.append(time.perf_counter() - self.sent)
        assert self.answer in got, got
        self.got = b""
        self.next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_exception(exc or ConnectionResetError("a replayer hung up"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """How long it took to be answered."""

    seconds: float
    waits: tuple[float, ...]
    """Of each request, in the order of the answers."""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.waits) / self.seconds


async def crowd(
    port: int,
    wanted: Iterable[Asks],
    connections: int,
    *,
    ca: Path | None = None,
    begin: Callable[[], object] = lambda: None,
) -> Took:
    """All answers, over connections that are open before the first of them is asked for."""
    loop, waits, left = asyncio.get_running_loop(), list[float](), iter(wanted)
    tls = None if ca is None else ssl.create_default_context(cafile=ca)
    asking = [
        (
            await loop.create_connection(
                lambda: _Asking(left, waits),
                sock=await asyncio.to_thread(tunnel, port, ca is not None),
                ssl=tls,
                server_hostname=HOST if tls else None,
            )
        )[1]
        for _ in range(connections)
    ]
    begin()
    began = time.perf_counter()
    for each in asking:
        each.next()
    async with asyncio.timeout(LIMIT):
        await asyncio.gather(*(each.over for each in asking))
    took = Took(seconds=time.perf_counter() - began, waits=tuple(waits))
    for each in asking:
        each.transport.abort()
    return took
