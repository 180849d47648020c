"""WebSockets through the proxy: real clients and servers, every turn as it was, every end too."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from copy import replace
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType, web

from recorder.event_loop import run_event_loop
from recorder.proxy.recording import RecordingProxy
from tests.support.leak_search import leaks
from tests.support.servers.raw_servers import (
    BOUND,
    Notes,
    recording,
    server_tls,
)
from traces.bodies import websocket
from traces.model import BodyEdit, Chunk, Exchange, Response, Trajectory
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

type Talk = Callable[[web.WebSocketResponse, "Server"], Awaitable[None]]
type Socket = aiohttp.ClientWebSocketResponse

TEXT, BINARY = WSMsgType.TEXT, WSMsgType.BINARY
BIG = 5_000_000


@dataclass
class Server:
    """A server of WebSockets that listens, and all that it was sent."""

    port: int = 0
    got: list[tuple[WSMsgType, str | bytes]] = field(default_factory=list)
    code: int | None = None
    """The code with which the last connection was closed."""
    transport: Any = None
    over: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def server(
    talk: Talk, *, tls: ssl.SSLContext | None = None, compress: bool = True
) -> AsyncIterator[Server]:
    """A server that does `talk` with each connection and then closes it with code 1000."""
    heard = Server()

    async def meet(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(compress=compress, max_msg_size=0, timeout=1.0)
        await ws.prepare(request)
        heard.transport = request.transport
        try:
            await talk(ws, heard)
        finally:
            await ws.close()
            heard.code = ws.close_code
            heard.over.set()
        return ws

    app = web.Application()
    app.add_routes([web.get("/{path:.*}", meet)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        heard.port = runner.addresses[0][1]
        yield heard
    finally:
        await runner.cleanup()


async def echo(ws: web.WebSocketResponse, heard: Server) -> None:
    """Say everything twice."""
    async for message in ws:
        heard.got.append((message.type, message.data))
        for _ in range(2):
            if message.type is TEXT:
                await ws.send_str(message.data)
            else:
                await ws.send_bytes(message.data)


@asynccontextmanager
async def client(
    port: int, proxy: RecordingProxy, *, scheme: str = "ws", compress: int = 0, path: str = "/ws"
) -> AsyncIterator[Socket]:
    """An agent that talks to the server through the proxy."""
    # Given ws://, aiohttp would ask the proxy for a URL of that scheme, as no other client does.
    url = f"{scheme.replace('ws', 'http')}://localhost:{port}{path}"
    trust = ssl.create_default_context(cafile=proxy.certificate)
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            url,
            proxy=proxy.url,
            ssl=trust,
            compress=compress,
            max_msg_size=0,
            timeout=aiohttp.ClientWSTimeout(ws_close=2.0),
        ) as ws,
    ):
        yield ws


async def turns(notes: Notes, number: int) -> list[Exchange]:
    """The exchanges that are over, once they are so many: the upgrade and then the turns."""
    async with asyncio.timeout(BOUND):
        while len(notes.over) < number:
            await asyncio.sleep(0.001)
    assert len(notes.over) == number
    return notes.over


def said(exchange: Exchange) -> list[bytes]:
    assert exchange.response is not None
    return [chunk.data for chunk in exchange.response.chunks]


@pytest.mark.parametrize("scheme", ["ws", "wss"])
@pytest.mark.parametrize("compress", [0, 15])
def test_each_message_of_the_agent_is_a_turn(scheme: str, compress: int) -> None:
    async def main() -> None:
        notes = Notes()
        tls = server_tls() if scheme == "wss" else None
        async with server(echo, tls=tls) as real, recording(notes) as proxy:
            async with client(real.port, proxy, scheme=scheme, compress=compress) as ws:
                assert bool(ws.compress) is bool(compress)
                for text in ("grüß dich", "", "x" * 70_000):
                    await ws.send_str(text)
                    assert [await ws.receive_str(), await ws.receive_str()] == [text, text]
                await ws.send_bytes(bytes(range(256)))
                assert await ws.receive_bytes() == await ws.receive_bytes() == bytes(range(256))
            upgrade, *rest = await turns(notes, 5)
        assert [data for _, data in real.got] == ["grüß dich", "", "x" * 70_000, bytes(range(256))]
        assert (upgrade.request.method, upgrade.stream, said(upgrade)) == ("GET", 0, [])
        assert upgrade.request.url == f"{scheme.replace('ws', 'http')}://localhost:{real.port}/ws"
        assert [turn.request.method for turn in rest] == ["TEXT", "TEXT", "TEXT", "BINARY"]
        assert [turn.stream for turn in rest] == [1, 2, 3, 4]
        for turn in notes.over:
            assert (turn.transport, turn.request.url) == ("websocket", upgrade.request.url)
            assert (turn.connection, turn.error) == (1, None)
            assert turn.response is not None
            assert turn.response.status == 101
            assert turn.response.ended is not None
            at = [turn.started, turn.response.at, *(c.at for c in turn.response.chunks)]
            assert sorted([*at, turn.response.ended]) == [*at, turn.response.ended]
        for turn, (_, data) in zip(rest, real.got, strict=True):
            body = data.encode() if isinstance(data, str) else data
            assert turn.request.body == body
            assert said(turn) == [body, body]
        assert websocket.read_binary_flags(rest[-1].response or Response(status=0)) == (True, True)
        assert [seen.seq for seen in notes.asked] == [turn.seq for turn in notes.over]

    run_event_loop(main())


def test_messages_have_the_times_at_which_they_came() -> None:
    async def talk(ws: web.WebSocketResponse, heard: Server) -> None:
        await ws.send_str("before you ask")
        await ws.receive()
        for n in range(3):
            await asyncio.sleep(0.05)
            await ws.send_str(str(n))
        await ws.receive()

    async def main() -> None:
        notes = Notes()
        async with server(talk) as real, recording(notes) as proxy:
            async with client(real.port, proxy) as ws:
                assert await ws.receive_str() == "before you ask"
                await ws.send_str("go")
                assert [await ws.receive_str() for _ in range(3)] == ["0", "1", "2"]
            upgrade, turn = await turns(notes, 2)
        assert said(upgrade) == [b"before you ask"]
        assert turn.response is not None
        times = [turn.started, *(chunk.at for chunk in turn.response.chunks)]
        assert all(b - a >= 0.049 for a, b in zip(times, times[1:], strict=False))
        assert turn.response.at == times[1]

    run_event_loop(main())


@pytest.mark.parametrize("compress", [0, 15])
def test_five_megabytes_pass_both_ways(compress: int) -> None:
    async def main() -> None:
        notes = Notes()
        async with server(echo) as real, recording(notes) as proxy:
            async with client(real.port, proxy, compress=compress) as ws:
                data = bytes(range(256)) * (BIG // 256)
                await ws.send_bytes(data)
                assert await ws.receive_bytes() == data
                assert await ws.receive_bytes() == data
            _, turn = await turns(notes, 2)
        assert turn.request.body == data
        assert said(turn) == [data, data]

    run_event_loop(main())


def test_which_messages_were_binary_is_kept() -> None:
    kinds = (True, False, False, True)

    async def talk(ws: web.WebSocketResponse, heard: Server) -> None:
        await ws.receive()
        for binary in kinds:
            await (ws.send_bytes(b"b") if binary else ws.send_str("t"))
        await ws.receive()

    async def main() -> None:
        notes = Notes()
        async with server(talk) as real, recording(notes) as proxy:
            async with client(real.port, proxy) as ws:
                await ws.send_str("go")
                got = [(await ws.receive()).type for _ in kinds]
            _, turn = await turns(notes, 2)
        assert got == [BINARY if binary else TEXT for binary in kinds]
        assert turn.response is not None
        assert websocket.read_binary_flags(turn.response) == kinds
        assert notes.heads[1].response is not None
        assert notes.heads[1].response.headers == (("opcode", "BINARY"),)
        assert turn.response.trailers == (("switch", "1 3"),)

    run_event_loop(main())


def test_what_comes_in_pieces_between_pings_is_one_message() -> None:
    """Frames as no library sends them: cut in the middle of a character, a ping between."""
    key = bytes(4)  # masked with zeros, bytes are themselves
    sent = b"\x01\x81" + key + b"\xc3" + b"\x89\x81" + key + b"p" + b"\x80\x81" + key + b"\xbc"
    upgrade = (
        b"Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )

    async def main() -> None:
        notes = Notes()
        async with server(echo) as real, recording(notes) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(b"GET http://localhost:%d/ws HTTP/1.1\r\n%s" % (real.port, upgrade))
            await reader.readuntil(b"\r\n\r\n")
            for place in range(len(sent)):
                writer.write(sent[place : place + 1])
                await asyncio.sleep(0)
            pong, twice = b"\x8a\x01p", b"\x81\x02\xc3\xbc" * 2
            assert await reader.readexactly(len(pong + twice)) == pong + twice
            writer.close()
            _, turn = await turns(notes, 2)
        assert (turn.request.body, said(turn)) == (b"\xc3\xbc", [b"\xc3\xbc"] * 2)

    run_event_loop(main())


async def ended(ws: Socket) -> tuple[int | None, str | None]:
    """The code with which a connection ended for the agent, and the reason."""
    message = await ws.receive()
    reason = message.extra if message.type is WSMsgType.CLOSE else None
    return ws.close_code, reason


@pytest.mark.parametrize("scheme", ["ws", "wss"])
@pytest.mark.parametrize(
    ("code", "why", "kept"),
    [(1000, "", "1000"), (1011, "no wörk", "1011 no wörk"), (4002, "", "4002")],
)
def test_a_close_of_the_server_passes_as_it_was(
    scheme: str, code: int, why: str, kept: str
) -> None:
    async def talk(ws: web.WebSocketResponse, heard: Server) -> None:
        await ws.receive()
        await ws.send_str("last words")
        await ws.close(code=code, message=why.encode())

    async def main() -> None:
        notes = Notes()
        tls = server_tls() if scheme == "wss" else None
        async with server(talk, tls=tls) as real, recording(notes) as proxy:
            async with client(real.port, proxy, scheme=scheme) as ws:
                await ws.send_str("go")
                assert await ws.receive_str() == "last words"
                assert await ended(ws) == (code, why)
            _, turn = await turns(notes, 2)
            await real.over.wait()
        assert turn.error is None
        assert turn.response is not None
        assert turn.response.ended is not None
        assert websocket.read_websocket_close(turn.response) == (code, why)
        assert turn.response.trailers == (("close", kept.encode().decode("latin-1")),)

    run_event_loop(main())


@pytest.mark.parametrize(("code", "kept"), [(1000, ()), (3001, (("closed", "3001 bye"),))])
def test_a_close_of_the_agent_passes_as_it_was(code: int, kept: tuple[object, ...]) -> None:
    async def main() -> None:
        notes = Notes()
        async with server(echo) as real, recording(notes) as proxy:
            async with client(real.port, proxy) as ws:
                await ws.send_str("go")
                await ws.receive_str()
                await ws.receive_str()
                await ws.close(code=code, message=b"bye")
            _, turn = await turns(notes, 2)
            await real.over.wait()
        assert real.code == code
        assert turn.error is None
        assert turn.response is not None
        assert turn.response.ended is not None
        assert turn.response.trailers == kept

    run_event_loop(main())


def vanish(transport: Any, how: str) -> None:
    """End a connection without a close, by RST or by FIN."""
    if how == "eof":
        transport.close()
        return
    number = transport.get_extra_info("socket").fileno()
    with socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def hang_up(ws: Socket, how: str = "eof") -> None:
    """Leave as a process does that ends."""
    assert ws._response.connection is not None
    vanish(ws._response.connection.transport, how)


@pytest.mark.parametrize("scheme", ["ws", "wss"])
@pytest.mark.parametrize("how", ["reset", "eof"])
def test_a_server_that_vanishes_is_no_clean_close(how: str, scheme: str) -> None:
    """Without us the agent sees 1006, which is the code of no close at all."""

    async def talk(ws: web.WebSocketResponse, heard: Server) -> None:
        await ws.receive()
        await ws.send_str("last words")
        await ws.receive()
        vanish(heard.transport, how)

    async def main() -> None:
        notes = Notes()
        tls = server_tls() if scheme == "wss" else None
        async with server(talk, tls=tls) as real, recording(notes) as proxy:
            async with client(real.port, proxy, scheme=scheme) as ws:
                await ws.send_str("go")
                assert await ws.receive_str() == "last words"
                await ws.send_str("go on")
                assert await ended(ws) == (1006, None)
            _, answered, cut = await turns(notes, 3)
        assert answered.error is None
        assert (cut.error, cut.response) == (f"{how}: the server went without a close", None)

    run_event_loop(main())


@pytest.mark.parametrize("how", ["reset", "eof"])
def test_an_answer_that_broke_off_keeps_what_came(how: str) -> None:
    async def talk(ws: web.WebSocketResponse, heard: Server) -> None:
        await ws.receive()
        await ws.send_str("half of")
        await ws.receive()

    async def main() -> None:
        notes = Notes()
        async with server(talk) as real, recording(notes) as proxy:
            async with client(real.port, proxy) as ws:
                await ws.send_str("go")
                assert await ws.receive_str() == "half of"
                hang_up(ws, how)
            _, turn = await turns(notes, 2)
            await real.over.wait()
        assert real.code == 1006
        assert said(turn) == [b"half of"]
        assert turn.error == f"cancelled: {how} by the agent"

    run_event_loop(main())


EVENT = '{"type":"response.completed","response":{"id":"r"}}'


def test_an_agent_that_goes_after_a_whole_answer_has_cancelled_nothing() -> None:
    """Real agents hang up without a close when they are done."""

    async def talk(ws: web.WebSocketResponse, heard: Server) -> None:
        await ws.receive()
        await ws.send_str(EVENT)
        await ws.receive()

    async def main() -> None:
        notes = Notes()
        async with server(talk) as real, recording(notes) as proxy:
            async with client(real.port, proxy, path="/v1/responses") as ws:
                await ws.send_str('{"type":"response.create","input":[]}')
                await ws.receive_str()
                hang_up(ws)
            _, turn = await turns(notes, 2)
        assert (turn.error, said(turn)) == (None, [EVENT.encode()])
        assert turn.response is not None
        assert turn.response.ended is not None

    run_event_loop(main())


def test_what_is_under_way_when_the_proxy_ends_is_told_once() -> None:
    async def main() -> None:
        notes = Notes()
        async with server(echo) as real:
            async with recording(notes) as proxy:
                talk = client(real.port, proxy)
                ws = await talk.__aenter__()
                await ws.send_str("go")
                assert await ws.receive_str() == await ws.receive_str() == "go"
            assert (await ended(ws))[0] == 1006
            await talk.__aexit__(None, None, None)
        upgrade, turn = notes.over
        assert (upgrade.error, said(turn)) == (None, [b"go", b"go"])
        assert turn.error == "cancelled: eof by the agent"

    run_event_loop(main())


class Player:
    """Answers the turns that say `play` by itself."""

    def __init__(self, answer: Response | None, error: str | None = None) -> None:
        self.answer, self.error = answer, error

    def request(self, exchange: Exchange) -> Exchange:
        if exchange.request.body != b"play":
            return exchange
        return replace(exchange, response=self.answer, error=self.error, answered_by="recorded")


def test_a_tap_that_answers_is_heard_as_messages() -> None:
    answer = Response(
        status=101,
        headers=websocket.make_websocket_headers(True),
        chunks=(Chunk(at=5.0, data=b"one"), Chunk(at=6.0, data=b"two")),
        trailers=websocket.make_websocket_trailers((True, False)),
        ended=7.0,
    )

    async def main() -> None:
        notes = Notes()
        async with server(echo) as real, recording(Player(answer), notes) as proxy:
            async with client(real.port, proxy) as ws:
                await ws.send_str("play")
                assert await ws.receive_bytes() == b"one"
                assert await ws.receive_str() == "two"
                await ws.send_str("real")
                assert await ws.receive_str() == await ws.receive_str() == "real"
            _, played, live = await turns(notes, 3)
        assert [data for _, data in real.got] == ["real"]
        assert (played.answered_by, live.answered_by) == ("recorded", "live")
        assert said(played) == [b"one", b"two"]
        assert played.response is not None
        assert played.response.chunks[-1].at < 4.0
        assert websocket.read_binary_flags(played.response) == (True, False)

    run_event_loop(main())


@pytest.mark.parametrize(
    ("error", "close", "code"),
    [("reset: as recorded", None, 1006), ("eof", None, 1006), (None, (1013, "later"), 1013)],
)
def test_a_tap_may_break_or_close_after_its_words(
    error: str | None, close: tuple[int, str] | None, code: int
) -> None:
    answer = Response(
        status=101,
        chunks=(Chunk(at=0, data=b"half"),),
        trailers=websocket.make_websocket_trailers((False,), close),
    )

    async def main() -> None:
        notes = Notes()
        async with server(echo) as real, recording(Player(answer, error), notes) as proxy:
            async with client(real.port, proxy) as ws:
                await ws.send_str("play")
                if error is None or error == "eof":  # a reset may overtake what was sent
                    assert await ws.receive_str() == "half"
                    assert (await ended(ws))[0] == code
                else:
                    while not ws.closed:
                        await ws.receive()
                    assert ws.close_code == 1006
            _, turn = await turns(notes, 2)
            await real.over.wait()
        assert (turn.error, said(turn), real.got) == (error, [b"half"], [])
        assert turn.response is not None
        assert websocket.read_websocket_close(turn.response) == close

    run_event_loop(main())


def test_a_message_goes_on_as_edited_and_is_recorded_as_said() -> None:
    class Bend:
        def request(self, exchange: Exchange) -> Exchange:
            if exchange.request.method == "GET":
                return exchange
            return replace(exchange, edits=(BodyEdit(start=0, stop=4, data=b"a longer lie"),))

    async def main() -> None:
        notes = Notes()
        async with server(echo) as real, recording(Bend(), notes) as proxy:
            async with client(real.port, proxy) as ws:
                await ws.send_str("true it is")
                assert await ws.receive_str() == "a longer lie it is"
            _, turn = await turns(notes, 2)
        assert (real.got, turn.request.body) == ([(TEXT, "a longer lie it is")], b"true it is")

    run_event_loop(main())


def test_an_answer_that_is_held_is_bent_when_it_is_whole() -> None:
    class Bend:
        def holds(self, exchange: Exchange) -> bool:
            return exchange.request.method == "TEXT"

        def response(self, exchange: Exchange) -> Exchange:
            answer = exchange.response
            assert answer is not None
            assert [chunk.data for chunk in answer.chunks] == [b"{}", EVENT.encode()]
            return replace(exchange, response=replace(answer, chunks=answer.chunks[1:]))

    async def talk(ws: web.WebSocketResponse, heard: Server) -> None:
        await ws.receive()
        await ws.send_str("{}")
        await asyncio.sleep(0.02)
        await ws.send_str(EVENT)
        await ws.receive()

    async def main() -> None:
        notes = Notes()
        async with server(talk) as real, recording(Bend(), notes) as proxy:
            async with client(real.port, proxy, path="/v1/responses") as ws:
                await ws.send_str('{"type":"response.create","input":[]}')
                assert await ws.receive_str() == EVENT
            _, turn = await turns(notes, 2)
        assert (turn.error, said(turn)) == (None, [EVENT.encode()])

    run_event_loop(main())


def test_who_speaks_no_websocket_is_cut_off_and_named() -> None:
    async def talk(ws: web.WebSocketResponse, heard: Server) -> None:
        await ws.receive()
        heard.transport.write(b"\x83\x00")  # an opcode that means nothing
        await ws.receive()

    async def main() -> None:
        notes = Notes()
        async with server(talk) as real, recording(notes) as proxy:
            async with client(real.port, proxy) as ws:
                await ws.send_str("go")
                assert await ended(ws) == (1006, None)
            _, turn = await turns(notes, 2)
        assert turn.error == "protocol: the server spoke no WebSocket: Invalid opcode 0x3"

    run_event_loop(main())


KEY = "sk-live-0123456789abcdefghij"


def test_secrets_in_messages_are_not_on_the_tape(tmp_path: Path) -> None:
    async def talk(ws: web.WebSocketResponse, heard: Server) -> None:
        async for message in ws:
            await ws.send_str(f"you said {message.data}")
            for piece in (KEY[:9], KEY[9:17], KEY[17:]):
                await ws.send_str(f'{{"type":"x.delta","delta":"{piece}"}}')
            await ws.send_bytes(KEY.encode())

    path = tmp_path / "a.tape"

    async def main() -> None:
        notes = Notes()
        with TapeWriter(path, Trajectory(id="r", recorded_at=0.0), secrets=[KEY]) as tape:
            async with server(talk) as real, recording(tape, notes) as proxy:
                async with client(real.port, proxy, compress=15) as ws:
                    await ws.send_str(f"my key is {KEY}")
                    assert KEY in await ws.receive_str()
                    for _ in range(4):
                        await ws.receive()
                await turns(notes, 2)

    run_event_loop(main())
    _, turn = read_tape(path).exchanges
    assert leaks(KEY, path) == 0
    assert turn.request.body == b"my key is REDACTEDo1xxxxxxxxxxxxxxxxxZ"[:38]
    assert [len(data) for data in said(turn)] == [47, 38, 37, 40, 28]
    assert turn.redacted
    assert turn.response is not None
    assert websocket.read_binary_flags(turn.response) == (False, False, False, False, True)
