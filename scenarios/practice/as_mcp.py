"""The tools as an MCP server on the official SDK, over stdio or streamable HTTP.

One server speaks both ages of the protocol: the client's first message decides whether it is
2026-07-28 (stateless, JSON answers or a stream per request) or 2025-11-25 (`initialize`, a
session id, a long-lived GET stream). State and behaviour are those of `server.py`: what is an
HTTP status there is a result with `isError` here, and an unknown tool is a JSON-RPC error, as
the protocol wants it. Results are given twice, as text and as `structuredContent`.
"""

import argparse
import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from socket import AF_INET, IPPROTO_TCP, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

import mcp_types as wire
import orjson
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from scenarios.practice import world
from scenarios.practice.book import connect
from scenarios.practice.tasks import EVERY
from scenarios.practice.tools import TOOLS, Tool, call

NAME = "shop"
PATH = "/mcp"
HOSTS = ("127.0.0.1:*", "localhost:*", "mcp.practice")
"""What a client may call the server; anything else may be a browser led astray."""

_GRACE = 1
"""Seconds that open streams delay the end of the server."""


@asynccontextmanager
async def serving(db: Path, port: int = 0, *, json: bool = False) -> AsyncIterator[int]:
    """Serve an order book that `world.setup` has made over HTTP on loopback; gives the port.

    `json` answers sessions in plain JSON too, where the SDK would send a stream per answer.
    """
    with closing(connect(db)) as book:
        async with listening(server(book), port, json=json) as chosen:
            yield chosen


@asynccontextmanager
async def listening(
    tools: Server, port: int = 0, *, json: bool = False, hosts: Sequence[str] = HOSTS
) -> AsyncIterator[int]:
    """Serve any MCP server over HTTP on loopback until the block ends; gives the port."""
    # asyncio delays what is written unless the socket says that it is one of TCP.
    tcp = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP)
    with tcp as listener:
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        app = tools.streamable_http_app(
            streamable_http_path=PATH,
            json_response=json,
            transport_security=TransportSecuritySettings(allowed_hosts=[*hosts]),
        )
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=_GRACE)
        web = _Web(config)
        running = asyncio.create_task(web.serve([listener]))
        try:
            while not web.started and not running.done():
                await asyncio.sleep(0.001)
            yield listener.getsockname()[1]
        finally:
            web.should_exit = True
            await running


class _Web(uvicorn.Server):
    """Signals are for whoever started it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def over_stdio(db: Path) -> None:
    """Serve an order book on stdin and stdout until stdin ends."""
    with closing(connect(db)) as book:
        shop = server(book)
        async with stdio_server() as (reader, writer):
            await shop.run(reader, writer, shop.create_initialization_options())


def server(book: sqlite3.Connection) -> Server:
    """The shop's tools, on this order book."""

    async def offered(_: object, __: object) -> wire.ListToolsResult:
        return wire.ListToolsResult(tools=[_offer(tool) for tool in TOOLS.values()])

    async def called(_: object, asked: wire.CallToolRequestParams) -> wire.CallToolResult:
        if asked.name not in TOOLS:
            raise MCPError(wire.INVALID_PARAMS, f"Unknown tool: {asked.name}")
        status, body = call(book, asked.name, asked.arguments or {})
        text = wire.TextContent(text=orjson.dumps(body).decode())
        if status != 200:
            return wire.CallToolResult(content=[text], is_error=True)
        return wire.CallToolResult(content=[text], structured_content=body)

    return Server(NAME, version="1", on_list_tools=offered, on_call_tool=called)


def _offer(tool: Tool) -> wire.Tool:
    return wire.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=tool.returns,
        annotations=wire.ToolAnnotations(read_only_hint=not tool.writes),
    )


async def until_told(db: Path, port: int, *, json: bool = False) -> None:
    """Serve over HTTP, say `listening PORT`, and end on SIGTERM or SIGINT."""
    told, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    async with serving(db, port, json=json) as chosen:
        print(f"listening {chosen}", flush=True)
        await told.wait()


def main() -> None:
    """Set up the file for a task, then serve it."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.practice.as_mcp", description=__doc__
    )
    parser.add_argument("--db", type=Path, required=True, help="the SQLite file; made if missing")
    parser.add_argument("--task", choices=EVERY, help="bring the file into this task's start state")
    parser.add_argument("--http", action="store_true", help="streamable HTTP instead of stdio")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="answer sessions without streams")
    options = parser.parse_args()
    if options.task or not options.db.exists():
        world.setup(options.db, EVERY[options.task or next(iter(EVERY))])
    web = until_told(options.db, options.port, json=options.json) if options.http else None
    asyncio.run(web or over_stdio(options.db))


if __name__ == "__main__":
    main()
