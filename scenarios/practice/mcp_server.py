"""The shop's tools as an MCP server on the official SDK, over stdio or streamable HTTP.

One server speaks both protocol generations: the client's first message selects 2026-07-28
(stateless, JSON answers or a stream per request) or 2025-11-25 (`initialize`, a session id, a
long-lived GET stream). State and behaviour are those of `tool_server.py`: its HTTP error statuses
are results with `isError` here, and an unknown tool is a JSON-RPC error, as the protocol requires.
Results are returned twice, as text and as `structuredContent`.
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
from mcp.server.streamable_http import EventStore
from mcp.server.transport_security import TransportSecuritySettings

from scenarios.practice import world
from scenarios.practice.order_book import connect_order_book
from scenarios.practice.tasks.registry import ALL_TASKS
from scenarios.practice.tools.registry import SHOP_TOOLS, ShopTool, call_shop_tool

MCP_SERVER_NAME = "shop"
MCP_PATH = "/mcp"
ALLOWED_HOSTS = ("127.0.0.1:*", "localhost:*", "mcp.practice")
"""Accepted Host headers; any other may come from a browser under DNS rebinding."""

_SHUTDOWN_SECONDS = 1
"""Seconds that open streams may delay the shutdown."""


@asynccontextmanager
async def serve_mcp_order_book(
    db: Path, port: int = 0, *, json: bool = False
) -> AsyncIterator[int]:
    """Serve an order book made by `world.set_up_order_book` over HTTP on loopback; yield the port.

    With `json` sessions are answered in plain JSON too, where the SDK would send a stream.
    """
    with closing(connect_order_book(db)) as book:
        async with serve_mcp_on_loopback(build_mcp_server(book), port, json=json) as chosen:
            yield chosen


@asynccontextmanager
async def serve_mcp_on_loopback(
    tools: Server,
    port: int = 0,
    *,
    json: bool = False,
    hosts: Sequence[str] = ALLOWED_HOSTS,
    events: EventStore | None = None,
) -> AsyncIterator[int]:
    """Serve any MCP server over HTTP on loopback for the duration of the block; yield the port.

    With `events` the streams of its sessions can be resumed.
    """
    # asyncio sets TCP_NODELAY only if the socket's protocol is IPPROTO_TCP.
    tcp = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP)
    with tcp as listener:
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        app = tools.streamable_http_app(
            streamable_http_path=MCP_PATH,
            json_response=json,
            event_store=events,
            transport_security=TransportSecuritySettings(allowed_hosts=[*hosts]),
        )
        config = uvicorn.Config(
            app, log_level="warning", timeout_graceful_shutdown=_SHUTDOWN_SECONDS
        )
        web = _SignalFreeServer(config)
        running = asyncio.create_task(web.serve([listener]))
        try:
            while not web.started and not running.done():
                await asyncio.sleep(0.001)
            yield listener.getsockname()[1]
        finally:
            web.should_exit = True
            await running


class _SignalFreeServer(uvicorn.Server):
    """A uvicorn server that leaves signals to the caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_mcp_over_stdio(db: Path) -> None:
    """Serve an order book on stdin and stdout until stdin ends."""
    with closing(connect_order_book(db)) as book:
        shop = build_mcp_server(book)
        async with stdio_server() as (reader, writer):
            await shop.run(reader, writer, shop.create_initialization_options())


def build_mcp_server(book: sqlite3.Connection) -> Server:
    """Build an MCP server with the shop's tools on this order book."""

    async def offered(_: object, __: object) -> wire.ListToolsResult:
        return wire.ListToolsResult(tools=[_to_shop_mcp_tool(tool) for tool in SHOP_TOOLS.values()])

    async def called(_: object, asked: wire.CallToolRequestParams) -> wire.CallToolResult:
        if asked.name not in SHOP_TOOLS:
            raise MCPError(wire.INVALID_PARAMS, f"Unknown tool: {asked.name}")
        status, body = call_shop_tool(book, asked.name, asked.arguments or {})
        text = wire.TextContent(text=orjson.dumps(body).decode())
        if status != 200:
            return wire.CallToolResult(content=[text], is_error=True)
        return wire.CallToolResult(content=[text], structured_content=body)

    return Server(MCP_SERVER_NAME, version="1", on_list_tools=offered, on_call_tool=called)


def _to_shop_mcp_tool(tool: ShopTool) -> wire.Tool:
    return wire.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=tool.returns,
        annotations=wire.ToolAnnotations(read_only_hint=not tool.writes),
    )


async def serve_mcp_until_stopped(db: Path, port: int, *, json: bool = False) -> None:
    """Serve over HTTP, print `listening PORT`, and stop on SIGTERM or SIGINT."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with serve_mcp_order_book(db, port, json=json) as chosen:
        print(f"listening {chosen}", flush=True)
        await stopped.wait()


def main() -> None:
    """Set up the file for a task, then serve it."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.practice.mcp_server", description=__doc__
    )
    parser.add_argument("--db", type=Path, required=True, help="the SQLite file; made if missing")
    parser.add_argument(
        "--task", choices=ALL_TASKS, help="bring the file into this task's start state"
    )
    parser.add_argument("--http", action="store_true", help="streamable HTTP instead of stdio")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="answer sessions without streams")
    options = parser.parse_args()
    if options.task or not options.db.exists():
        world.set_up_order_book(options.db, ALL_TASKS[options.task or next(iter(ALL_TASKS))])
    web = (
        serve_mcp_until_stopped(options.db, options.port, json=options.json)
        if options.http
        else None
    )
    asyncio.run(web or serve_mcp_over_stdio(options.db))


if __name__ == "__main__":
    main()
