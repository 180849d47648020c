"""A WebSocket played from a script: every message, every end, with a real client."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import replace
from pathlib import Path
from tempfile import mkdtemp

import aiohttp
import pytest
from aiohttp import WSMsgType

from recorder.proxy.server import ProxyServer, RunListener
from tests.support.servers.replay_server_thread import (
    WAIT,
    Script,
    on_stage,
)
from traces.bodies.websocket import (
    is_websocket_upgrade,
    make_websocket_headers,
    make_websocket_trailers,
    read_websocket_close,
)
from traces.model import Chunk, Exchange, Headers, Response

SWITCH = (
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Accept", "that of another key"),
    ("Sec-WebSocket-Extensions", "permessage-deflate"),
)
BIG = 5_000_000


def messages(
    exchange: Exchange,
    *said: str | bytes,
    headers: Headers = (),
    closed: tuple[int, str] | None = None,
    error: str | None = None,
    gap: float = 0.0,
) -> Exchange:
    """An answer of these messages, the first at once and each `gap` seconds after the last."""
    binary = [isinstance(each, bytes) for each in said]
    at = exchange.started
    data = [each if isinstance(each, bytes) else each.encode() for each in said]
    answer = Response(
        status=101,
        reason="Switching Protocols",
        headers=(*headers, *(make_websocket_headers(binary[0]) if binary else ())),
        chunks=tuple(Chunk(at=at + gap * n, data=each) for n, each in enumerate(data)),
        trailers=make_websocket_trailers(binary, closed),
        at=at,
        ended=None if error else at + gap * len(said),
    )
    return replace(exchange, response=answer, error=error, answered_by="recorded")


def echo(exchange: Exchange) -> Exchange:
    if is_websocket_upgrade(exchange.request):
        return messages(exchange, "welcome", headers=SWITCH)
    body = exchange.request.body
    return messages(exchange, body if exchange.request.method == "BINARY" else body.decode())


CA = Path(mkdtemp(prefix="stage-ca-"))


@pytest.fixture(scope="module")
def performer() -> ProxyServer:
    return ProxyServer(confdir=CA)


@asynccontextmanager
async def talk(
    stage: RunListener, scheme: str = "http"
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    trust = ssl.create_default_context(cafile=CA / "mitmproxy-ca-cert.pem")
    async with (
        asyncio.timeout(20),
        aiohttp.ClientSession() as session,
        session.ws_connect(
            f"{scheme}://a.example/ws", proxy=stage.url, ssl=trust, max_msg_size=0, compress=15
        ) as ws,
    ):
        yield ws
        transport = ws._conn.transport if ws._conn else None
    if transport is not None:  # aiohttp leaves a transport that the server has reset as it is
        transport.abort()
        await asyncio.sleep(0)


def played(
    performer: ProxyServer,
    script: Script,
    act: Callable[[aiohttp.ClientWebSocketResponse], object],
    scheme: str = "http",
) -> list[Exchange]:
    """What the taps were told that the agent got."""

    async def run(stage: RunListener) -> None:
        async with talk(stage, scheme) as ws:
            await act(ws)  # type: ignore[misc]

    with on_stage(performer, script) as stage:
        asyncio.run(run(stage))
    return script.got


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_each_message_is_answered_by_its_turn(performer: ProxyServer, scheme: str) -> None:
    async def act(ws: aiohttp.ClientWebSocketResponse) -> None:
        assert await ws.receive_str() == "welcome"
        for text in ("one", "", "drei ✓"):
            await ws.send_str(text)
            assert await ws.receive_str() == text
        await ws.send_bytes(b"\x00\xff")
        assert await ws.receive_bytes() == b"\x00\xff"

    upgrade, *turns = played(performer, Script(echo), act, scheme)
    assert upgrade.response is not None
    assert [chunk.data for chunk in upgrade.response.chunks] == [b"welcome"]
    assert {x.transport for x in (upgrade, *turns)} == {"websocket"}
    assert [(x.request.method, x.stream) for x in turns] == [
        ("TEXT", 1), ("TEXT", 2), ("TEXT", 3), ("BINARY", 4),
    ]  # fmt: skip
    assert {x.request.url for x in turns} == {f"{scheme}://a.example/ws"}
    assert all(x.error is None and x.response and x.response.ended for x in turns)


def test_a_message_of_five_megabytes_passes_both_ways(performer: ProxyServer) -> None:
    async def act(ws: aiohttp.ClientWebSocketResponse) -> None:
        await ws.receive_str()
        await ws.send_bytes(bytes(BIG))
        assert await ws.receive_bytes() == bytes(BIG)

    *_, turn = played(performer, Script(echo), act)
    assert len(turn.request.body) == BIG


def test_several_messages_answer_one_and_keep_their_times(performer: ProxyServer) -> None:
    def script(exchange: Exchange) -> Exchange:
        if is_websocket_upgrade(exchange.request):
            return messages(exchange, headers=SWITCH)
        return messages(exchange, "a", b"b", "c", gap=0.05)

    async def act(ws: aiohttp.ClientWebSocketResponse) -> None:
        await ws.send_str("go")
        got = [await ws.receive() for _ in range(3)]
        assert [(m.type, m.data) for m in got] == [
            (WSMsgType.TEXT, "a"), (WSMsgType.BINARY, b"b"), (WSMsgType.TEXT, "c"),
        ]  # fmt: skip

    _, turn = played(performer, Script(script), act)
    assert turn.response is not None
    late = [chunk.at - turn.started for chunk in turn.response.chunks]
    assert all(at >= 0.05 * place for place, at in enumerate(late)), "never early"


def test_a_ping_is_answered_and_is_no_turn(performer: ProxyServer) -> None:
    async def act(ws: aiohttp.ClientWebSocketResponse) -> None:
        await ws.receive_str()
        await ws.ping(b"there?")
        await ws.send_str("x")
        assert await ws.receive_str() == "x"

    assert len(played(performer, Script(echo), act)) == 2


def test_the_server_closes_as_it_did(performer: ProxyServer) -> None:
    def script(exchange: Exchange) -> Exchange:
        if is_websocket_upgrade(exchange.request):
            return messages(exchange, headers=SWITCH)
        return messages(exchange, "bye", closed=(1011, "no more"))

    async def act(ws: aiohttp.ClientWebSocketResponse) -> None:
        await ws.send_str("x")
        assert await ws.receive_str() == "bye"
        ended = await ws.receive()
        assert (ended.type, ended.data, ended.extra) == (WSMsgType.CLOSE, 1011, "no more")

    _, turn = played(performer, Script(script), act)
    assert turn.response is not None
    assert read_websocket_close(turn.response) == (1011, "no more")


@pytest.mark.parametrize("error", ["reset: by peer", "eof: gone"])
def test_a_server_that_vanished_vanishes_without_a_close(
    performer: ProxyServer, error: str
) -> None:
    def script(exchange: Exchange) -> Exchange:
        if is_websocket_upgrade(exchange.request):
            return messages(exchange, headers=SWITCH)
        return messages(exchange, "half", error=error)

    async def act(ws: aiohttp.ClientWebSocketResponse) -> None:
        await ws.send_str("x")
        assert await ws.receive_str() == "half"
        assert (await ws.receive()).type in (WSMsgType.CLOSED, WSMsgType.ERROR)
        assert ws.close_code in (None, 1006)

    _, turn = played(performer, Script(script), act)
    assert turn.error == error


def test_what_nobody_answers_is_declined_so_that_clients_go_on_over_http(
    performer: ProxyServer,
) -> None:
    asks = (
        b"GET http://a.example/ws HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eHh4\r\n\r\n"
    )
    with (
        on_stage(performer, Script()) as stage,
        socket.create_connection(("127.0.0.1", stage.port), timeout=WAIT) as agent,
    ):
        agent.sendall(asks)
        assert agent.recv(1 << 16).startswith(b"HTTP/1.1 426 ")
