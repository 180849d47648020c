"""A request that is handed to a server's connection ends, whatever the order of events is."""

import asyncio
import ssl
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recorder.proxy.http1_response import AnswerEnd, AnswerPart
from recorder.proxy.origin_connection import OriginConnection, UpstreamFailedError
from recorder.proxy.tls import TlsConnection
from tests.support.servers.raw_servers import server_ca, server_tls

REQUEST = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
PIECES = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
    b"hi",
    b"HTTP/1.1 200 OK\r\n\r\nup to the end",
    b"no HTTP\r\n\r\n",
)
ENDS = ("eof", "lost", "reset", "abort", "close")


class MemoryTransport(asyncio.Transport):
    """Keeps what is written, until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closing = self.paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    abort = close

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


@dataclass
class IdleEvents:
    """What the server did between answers."""

    data: list[bytes] = field(default_factory=list)
    ends: int = 0

    def on_idle_data(self, raw: bytes) -> None:
        self.data.append(raw)

    def on_idle_end(self, connection: OriginConnection, *, reset: bool, truncated: bool) -> None:
        self.ends += 1


@dataclass
class ConnectionRun:
    """One connection, its transport, and the parts of its answer."""

    tls: TlsConnection | None = None
    parts: list[AnswerPart] = field(default_factory=list)
    idle: IdleEvents = field(default_factory=IdleEvents)
    transport: MemoryTransport = field(default_factory=MemoryTransport)

    def __post_init__(self) -> None:
        self.connection = OriginConnection(
            lambda: 0.0, self.idle, self.tls, lambda connection: None
        )
        self.connection.connection_made(self.transport)

    def apply(self, event: str | bytes) -> None:
        """Do what the event loop or the owner of the connection does."""
        connection = self.connection
        if isinstance(event, bytes):
            connection.data_received(event)
        elif event == "eof":
            connection.eof_received()
            self.transport.close()
        elif event in ("lost", "reset"):
            connection.connection_lost(ConnectionResetError() if event == "reset" else None)
        elif event == "abort":
            connection.abort()
        else:
            connection.close()

    async def send_request(self) -> AnswerEnd:
        return await self.connection.ask(REQUEST, b"", self.parts.append)


async def settle(task: "asyncio.Task[AnswerEnd]") -> AnswerEnd:
    """Return how it ended, within the turns of the loop that callbacks need."""
    for _ in range(5):
        await asyncio.sleep(0)
    assert task.done(), "the request has no end"
    return task.result()


@given(
    before=st.lists(st.sampled_from((*PIECES, *ENDS)), max_size=4),
    after=st.lists(st.sampled_from((*PIECES, *ENDS)), max_size=4),
    last=st.sampled_from(ENDS),
)
@example(before=["eof"], after=[], last="lost")
@example(before=["lost"], after=[], last="lost")
@example(before=[PIECES[0], "eof"], after=[], last="lost")
@example(before=[], after=[PIECES[0]], last="close")
def test_every_request_ends_with_an_answer_or_an_error(
    before: list[str | bytes], after: list[str | bytes], last: str
) -> None:
    async def run() -> tuple[AnswerEnd, ConnectionRun]:
        run = ConnectionRun()
        for event in before:
            run.apply(event)
        task = asyncio.ensure_future(run.send_request())
        await asyncio.sleep(0)
        for event in (*after, last):
            run.apply(event)
        return await settle(task), run

    end, state = asyncio.run(run())
    finished = [part.end for part in state.parts if part.end is not None]
    assert finished == ([end] if end.error is None else [])


def test_an_answer_that_came_before_its_request_is_the_answer() -> None:
    async def run() -> tuple[AnswerEnd, ConnectionRun]:
        run = ConnectionRun()
        for event in (PIECES[0] + b"h", b"i", "eof", "lost"):
            run.apply(event)
        return await settle(asyncio.ensure_future(run.send_request())), run

    end, state = asyncio.run(run())
    assert end.error is None
    assert b"".join(piece for part in state.parts for piece in part.pieces) == b"hi"
    assert state.idle == IdleEvents()


def test_an_end_before_the_request_is_its_error() -> None:
    async def end_after(*events: str) -> AnswerEnd:
        run = ConnectionRun()
        for event in events:
            run.apply(event)
        return await settle(asyncio.ensure_future(run.send_request()))

    assert asyncio.run(end_after("eof", "lost")).ending == "eof"
    assert asyncio.run(end_after("reset")).ending == "reset"
    assert asyncio.run(end_after("abort")).ending == "cancelled"


def test_a_cancelled_request_aborts_its_connection() -> None:
    async def run() -> bool:
        run = ConnectionRun()
        task = asyncio.ensure_future(run.send_request())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return run.connection.is_usable

    assert not asyncio.run(run())


def test_an_error_of_whoever_takes_the_answer_ends_it() -> None:
    async def fail() -> None:
        raise OSError("full")

    async def run() -> AnswerEnd:
        run = ConnectionRun()
        task = asyncio.ensure_future(run.connection.ask(REQUEST, b"", lambda part: fail()))
        await asyncio.sleep(0)
        run.apply(PIECES[0])
        return await settle(task)

    with pytest.raises(OSError, match="full"):
        asyncio.run(run())


class TlsPeer:
    """The server's side of TLS, which may want a client certificate, in memory."""

    def __init__(self, *, wants_certificate: bool) -> None:
        context = server_tls("a.example")
        context.verify_mode = ssl.CERT_REQUIRED if wants_certificate else ssl.CERT_NONE
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def exchange(self, data: bytes) -> bytes:
        """Return what the server sends after these bytes."""
        self.incoming.write(data)
        try:
            self.tls.do_handshake()
            self.tls.unwrap()
        except ssl.SSLError:
            pass
        return self.outgoing.read()


@pytest.mark.parametrize("wants_certificate", [True, False])
@given(cuts=st.lists(st.integers(0, 4000), max_size=3), asks_after=st.integers(0, 5))
@example(cuts=[], asks_after=5)
def test_every_request_ends_if_the_server_ends_tls(
    wants_certificate: bool, cuts: list[int], asks_after: int
) -> None:
    async def run() -> AnswerEnd | str:
        trust = ssl.create_default_context(cafile=str(server_ca()))
        run = ConnectionRun(TlsConnection(trust, "a.example"))
        peer = TlsPeer(wants_certificate=wants_certificate)
        opening = asyncio.ensure_future(run.connection.start_tls())
        task: asyncio.Task[AnswerEnd] | None = None
        for turn in range(6):
            await asyncio.sleep(0)
            if task is None and opening.done() and turn >= asks_after and not opening.exception():
                task = asyncio.ensure_future(run.send_request())
                await asyncio.sleep(0)
            sent, run.transport.written = run.transport.written, b""
            for piece in _cut(peer.exchange(sent), cuts):
                run.apply(piece)
        run.apply("eof")
        run.apply("lost")
        try:
            await opening
        except UpstreamFailedError as error:
            return str(error)
        return await settle(task or asyncio.ensure_future(run.send_request()))

    end = asyncio.run(run())
    assert isinstance(end, AnswerEnd)
    assert end.ending == ("tls" if wants_certificate else "eof")


def _cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    return [data[a:b] for a, b in zip(places, places[1:], strict=False)]
