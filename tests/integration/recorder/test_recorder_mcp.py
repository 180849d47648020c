"""What an MCP server says before it answers reaches the client then, live and from a recording."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    Tool,
    ToolListChangedNotification,
)

from recorder.proxy.recording import start_recording_proxy
from recorder.proxy.route import UpstreamRoute
from recorder.proxy.server import ProxyServer
from replay.player import TapePlayer
from scenarios.practice import mcp_server
from tests.support.servers.raw_servers import (
    BOUND,
    confdir,
)
from traces.conversation.tracker import ConversationTap
from traces.dialects import mcp
from traces.model import Exchange, Trajectory
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

URL = "http://mcp.practice/mcp"


class Talker:
    """A server whose tool has a word to say, and answers once the client has heard it."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()

    def server(self) -> Server:
        async def offered(_: object, __: object) -> ListToolsResult:
            return ListToolsResult(tools=[Tool(name="wait", input_schema={"type": "object"})])

        async def called(context: ServerRequestContext, _: CallToolRequestParams) -> CallToolResult:
            if context.protocol_version == "2025-11-25":
                await context.session.send_tool_list_changed()
            await context.session.report_progress(1, 2)
            await self.heard.wait()
            await context.session.report_progress(2, 2)
            return CallToolResult(content=[TextContent(text="heard")])

        return Server("talker", on_list_tools=offered, on_call_tool=called)


async def converse(
    mode: Literal["auto", "legacy"], through: str, heard: asyncio.Event
) -> list[str]:
    """One call by the SDK's client; what it was told, in order, and the result."""
    said: list[str] = []
    told = {"a change": asyncio.Event(), "progress": asyncio.Event()}

    async def change(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            said.append("a change")
            told["a change"].set()

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        said.append(f"progress {progress:g}")
        told["progress"].set()

    async def listen() -> None:
        await told["progress"].wait()
        if mode == "legacy":
            await told["a change"].wait()
        heard.set()

    async with httpx2.AsyncClient(proxy=through, timeout=BOUND) as http:
        way = streamable_http_client(URL, http_client=http)
        async with (
            asyncio.timeout(BOUND),
            asyncio.TaskGroup() as tasks,
            Client(way, mode=mode, message_handler=change) as client,
        ):
            tasks.create_task(listen())
            result = await client.call_tool("wait", {}, progress_callback=progress)
            (part,) = result.content
            assert isinstance(part, TextContent)
    return [*sorted(said), part.text]


@asynccontextmanager
async def recorder(tape: Path, port: int) -> AsyncIterator[str]:
    with TapeWriter(tape, Trajectory(id="r", recorded_at=0.0)) as writer:
        async with start_recording_proxy(
            TapChain((ConversationTap(), writer)),
            confdir=confdir(),
            began=time.monotonic(),
            seqs=itertools.count(),
            upstream=UpstreamRoute(hosts={"mcp.practice": ("127.0.0.1", port)}),
        ) as listening:
            yield listening.url


def of(tape: Path, method: str) -> Exchange:
    (found,) = (
        exchange
        for exchange in read_tape(tape).exchanges
        if (message := mcp.read_client_message(exchange.request)) is not None
        and message.method == method
    )
    return found


@pytest.mark.gate
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_words_before_the_answer_are_heard_before_it(
    tmp_path: Path, mode: Literal["auto", "legacy"]
) -> None:
    tape = tmp_path / "a.tape"

    async def record() -> list[str]:
        talker = Talker()
        async with (
            mcp_server.serve_mcp_on_loopback(talker.server()) as port,
            recorder(tape, port) as through,
        ):
            return await converse(mode, through, talker.heard)

    async def replay() -> tuple[list[str], TapePlayer]:
        watch = ConversationTap()
        player = TapePlayer(read_tape(tape), watch)
        stage = ProxyServer(confdir=confdir()).create_listener(
            TapChain((watch, player)), began=time.monotonic(), seqs=itertools.count()
        )
        async with stage as listening:
            return await converse(mode, listening.url, asyncio.Event()), player

    live = asyncio.run(record())
    changes = ["a change"] if mode == "legacy" else []
    assert live == [*changes, "progress 1", "progress 2", "heard"]
    call = of(tape, "tools/call")
    assert call.response is not None
    assert len(call.response.chunks) >= 3
    assert call.response.chunks[0].at < call.response.chunks[-1].at
    assert mcp.has_mcp_response(call)
    if mode == "legacy":
        stream = of(tape, "GET")
        assert stream.response is not None
        assert b"notifications/tools/list_changed" in stream.response.body
        assert stream.response.chunks[0].at < call.response.chunks[-1].at
        assert stream.error is None or stream.error.startswith("cancelled")

    played, player = asyncio.run(replay())
    assert played == live
    assert (player.diverged, player.list_unasked()) == ([], ())
