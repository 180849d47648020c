"""The shop's tools over MCP are the tools over HTTP, in both ages of the protocol."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Literal

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import TextContent

from scenarios.practice import mcp_server, order_book, world
from scenarios.practice.tasks.registry import ORDER_TASKS
from scenarios.practice.tools import registry
from tests.support.agents.practice_agents import place

type Mode = Literal["auto", "legacy"]
MODES: dict[Mode, str] = {"auto": "2026-07-28", "legacy": "2025-11-25"}
TASK = ORDER_TASKS["refund-1"]
CALLS: tuple[tuple[str, dict[str, object]], ...] = (
    ("get_order", {"order_id": "ord-7018"}),
    ("get_order", {"order_id": "ord-1"}),
    ("get_order", {}),
    ("update_order", {"order_id": "ord-7018", "version": 1}),
    ("add_note", {"order_id": "ord-7018", "text": "hello"}),
)


@asynccontextmanager
async def client(path: Path, mode: Mode, way: str) -> AsyncIterator[Client]:
    if way == "stdio":
        arguments = ["-m", "stumble", "practice", "mcp", "refund-1", "--db", str(path)]
        async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as found:
            yield found
        return
    async with (
        mcp_server.serve_mcp_order_book(path, json=way == "json") as port,
        Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as found,
    ):
        yield found


async def called(found: Client, name: str, arguments: dict[str, object]) -> tuple[int, object]:
    """1 for an error and the JSON that the text holds, once it is known to be said twice."""
    result = await found.call_tool(name, arguments)
    (part,) = result.content
    assert isinstance(part, TextContent)
    body = json.loads(part.text)
    assert result.structured_content == (None if result.is_error else body)
    return int(result.is_error), body


@pytest.mark.gate
@pytest.mark.parametrize(
    ("mode", "way"),
    [("auto", "http"), ("legacy", "http"), ("legacy", "json"), ("auto", "stdio")],
)
def test_it_answers_as_the_http_server_does(tmp_path: Path, mode: Mode, way: str) -> None:
    path, other = tmp_path / "shop.db", tmp_path / "other.db"
    for each in (path, other):
        world.set_up_order_book(each, TASK)

    async def run() -> None:
        async with client(path, mode, way) as found:
            assert found.protocol_version == MODES[mode]
            with closing(order_book.connect_order_book(other)) as shop:
                for name, arguments in CALLS:
                    status, body = registry.call_shop_tool(
                        shop, name, json.loads(json.dumps(arguments))
                    )
                    assert await called(found, name, arguments) == (int(status != 200), body)
            with pytest.raises(MCPError, match="Unknown tool: get_orders"):
                await found.call_tool("get_orders", {})

    asyncio.run(run())
    with (
        closing(order_book.connect_order_book(path)) as one,
        closing(order_book.connect_order_book(other)) as two,
    ):
        assert order_book.read_order_book(one) == order_book.read_order_book(two)


def test_it_lists_its_tools_with_their_schemas(tmp_path: Path) -> None:
    world.set_up_order_book(tmp_path / "shop.db", TASK)

    async def run() -> None:
        async with client(tmp_path / "shop.db", "auto", "http") as found:
            listed = {tool.name: tool for tool in (await found.list_tools()).tools}
        assert listed.keys() == registry.SHOP_TOOLS.keys()
        for name, tool in listed.items():
            assert tool.input_schema == registry.SHOP_TOOLS[name].parameters
            assert tool.output_schema == registry.SHOP_TOOLS[name].returns
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is not registry.SHOP_TOOLS[name].writes

    asyncio.run(run())


@pytest.mark.thorough
@pytest.mark.gate
def test_the_agent_can_start_its_server_itself(tmp_path: Path) -> None:
    from tests.e2e.scenarios.test_scenarios_practice_agent import cold

    server = f"{sys.executable} -m scenarios.practice.mcp_server --db {tmp_path / 'shop.db'}"
    with place(tmp_path) as here:
        ran = cold("refund-1", "--tools", "mcp", "--mcp-command", server, env=here.env)
        assert (ran.exit, ran.err) == (0, "")
        assert ran.out.startswith("DONE")
        assert world.verify_order_book(here.shop, TASK).passed
