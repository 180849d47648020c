"""The same client gets the same bytes, and the same end, directly and through the recorder."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import h11
import pytest

from recorder.event_loop import run_event_loop
from recorder.proxy.corporate_proxy import read_proxy_settings
from recorder.proxy.recording import RecordingProxy
from recorder.proxy.route import DIRECT_ROUTE
from tests.support.servers.http_shapes import Shape, iterate_shapes
from tests.support.servers.raw_servers import (
    Notes,
    listening,
    recording,
    reset,
    server_ca,
    server_tls,
)
from traces.model import Exchange

SHAPES = list(iterate_shapes())
UNPARSED = ("length twice", "length list", "length of 20 digits")
"""What llhttp does not read, so that the recording has an error beside the agent's whole answer."""
AT_ONCE, PARTS = 16, 3
ELSEWHERE = "a.example"
"""A name that only the proxy behind the recorder can find."""
type Seen = tuple[bytes, str]
"""All bytes of a connection, and its end: `fin`, `cut` (TLS without close_notify) or `reset`."""


def test_there_are_many_shapes() -> None:
    assert len({shape.name for shape in SHAPES}) == len(SHAPES) > 300


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lowered = head.lower()
    if b"transfer-encoding: chunked" in lowered:
        return head + await reader.readuntil(b"0\r\n\r\n")
    length = 0
    for line in lowered.split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    return head + await reader.readexactly(length)


@asynccontextmanager
async def server(
    shape: Shape, tls: ssl.SSLContext | None
) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Answer as many requests as the client sends at once, then end."""
    asked: list[bytes] = []
    count = max(1, shape.asked.count(b" HTTP/1."))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(count):
            asked.append(await read_request(reader))
            size = -(-len(shape.answer) // shape.pieces) or 1
            for start in range(0, len(shape.answer), size):
                writer.write(shape.answer[start : start + size])
                await asyncio.sleep(0)
        await writer.drain()
        await asyncio.sleep(0.02)  # a reset at once may destroy what was not read yet
        if shape.end == "reset":
            reset(writer)

    async with listening(serve, tls=tls) as listener:
        yield listener.port, asked


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> Seen:
    writer.write(request)
    got = b""
    try:
        while data := await reader.read(65536):
            got += data
    except ssl.SSLError:
        return got, "cut"
    except ConnectionError:
        return got, "reset"
    finally:
        writer.transport.abort()
    return got, "fin"


async def dial(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


@dataclass
class Bench:
    """A recorder for all shapes, and what both sides trust."""

    proxy: RecordingProxy
    notes: Notes
    tls: bool
    servers: ssl.SSLContext
    recorder: ssl.SSLContext
    host: str

    async def ask_directly(self, shape: Shape, port: int) -> Seen:
        reader, writer = await dial(port)
        if self.tls:
            await writer.start_tls(self.servers, server_hostname="localhost")
        return await talk(reader, writer, shape.asked)

    async def ask_through(self, shape: Shape, port: int) -> Seen:
        reader, writer = await dial(self.proxy.port)
        if not self.tls:
            target = b" http://%s:%d/" % (self.host.encode(), port)
            return await talk(reader, writer, shape.asked.replace(b" /", target))
        writer.write(b"CONNECT %s:%d HTTP/1.1\r\n\r\n" % (self.host.encode(), port))
        await reader.readuntil(b"\r\n\r\n")
        await writer.start_tls(self.recorder, server_hostname=self.host)
        return await talk(reader, writer, shape.asked)

    async def compare(self, shape: Shape) -> list[str]:
        """Return what differs, directly and through the recorder."""
        before = len(self.notes.over)
        async with server(shape, server_tls(ELSEWHERE) if self.tls else None) as (port, asked):
            direct = await self.ask_directly(shape, port)
            asked_directly = asked.copy()
            asked.clear()
            through = await self.ask_through(shape, port)
        found = []
        if through != direct:
            found.append(f"{direct!r:.300} is {through!r:.300}")
        if asked != asked_directly:
            found.append(f"asked {asked_directly!r:.300} is {asked!r:.300}")
        over = [x for x in self.notes.over[before:] if f":{port}/" in x.request.url]
        return [f"{shape.name}: {each}" for each in [*found, *find_record_errors(shape, over)]]


def find_record_errors(shape: Shape, over: list[Exchange]) -> list[str]:
    """What h11 reads of a whole answer, and the recording does not have."""
    method = shape.asked.partition(b" ")[0]
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target="/", headers=[("Host", "a")]))
    client.send(h11.EndOfMessage())
    body, head, ended = b"", None, False
    try:
        client.receive_data(shape.answer)
        client.receive_data(b"")
        while not ended and (event := client.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            match event:
                case h11.Response():
                    head = event
                case h11.Data():
                    body += bytes(event.data)
                case h11.EndOfMessage() | h11.ConnectionClosed():
                    ended = isinstance(event, h11.EndOfMessage)
                    break
    except h11.RemoteProtocolError:
        return []
    if not ended or head is None or shape.end == "reset" or shape.name.startswith(UNPARSED):
        return []
    first = over[0]
    if first.error is not None or first.response is None or first.response.ended is None:
        return [f"recorded as {first.error}"]
    got = [(name.lower(), " ".join(value.split())) for name, value in first.response.headers]
    wanted = [(n.decode(), " ".join(v.decode("latin-1").split())) for n, v in head.headers]
    if got != wanted and "capitals" not in shape.name:  # of codings, which h11 changes
        return [f"recorded {got} and not {wanted}"]
    return [] if first.response.body == body else [f"recorded {first.response.body!r:.80}"]


def compare_all(shapes: list[Shape], *, tls: bool, behind: bool = False) -> list[str]:
    """Compare all shapes, also with an upstream proxy behind the recorder."""

    async def main() -> list[str]:
        slots, notes, seen = asyncio.Semaphore(AT_ONCE), Notes(), list[bytes]()
        async with AsyncExitStack() as stack:
            way = DIRECT_ROUTE.proxies
            if behind:
                port = await stack.enter_async_context(tunnelling_proxy(seen))
                way = read_proxy_settings({"ALL_PROXY": f"http://127.0.0.1:{port}"})
            proxy = await stack.enter_async_context(recording(notes, way=way))
            bench = Bench(
                proxy,
                notes,
                tls,
                ssl.create_default_context(cafile=server_ca()),
                ssl.create_default_context(cafile=proxy.certificate),
                ELSEWHERE if behind else "localhost",
            )

            async def compare(shape: Shape) -> list[str]:
                async with slots:
                    try:
                        async with asyncio.timeout(10):
                            return await bench.compare(shape)
                    except TimeoutError:
                        return [f"{shape.name}: no end"]

            found = sum(await asyncio.gather(*map(compare, shapes)), [])
        assert bool(seen) is behind
        return found

    return run_event_loop(main())


@pytest.mark.gate
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_through_the_recorder_is_as_directly(tls: bool, part: int) -> None:
    assert compare_all(SHAPES[part::PARTS], tls=tls) == []


@asynccontextmanager
async def tunnelling_proxy(seen: list[bytes]) -> AsyncIterator[int]:
    """A proxy that relays CONNECT, and requests with an absolute URL, byte for byte."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
            writer.close()
        except ConnectionError:
            reset(writer)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target = head.split(b" ")[:2]
        origin, colon, port = target.removeprefix(b"http://").partition(b"/")[0].partition(b":")
        assert origin == ELSEWHERE.encode()
        seen.append(target)
        there_reader, there = await dial(int(port))
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            there.write(head.replace(b"http://" + origin + colon + port, b"", 1))
        async with asyncio.TaskGroup() as both:
            both.create_task(copy(reader, there))
            both.create_task(copy(there_reader, writer))

    async with listening(serve) as listener:
        yield listener.port


@pytest.mark.gate
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_behind_a_proxy_it_is_as_directly(tls: bool) -> None:
    one_request = [shape for shape in SHAPES if shape.asked.count(b" HTTP/1.") == 1]
    assert compare_all(one_request[::3], tls=tls, behind=True) == []
