"""The practice world behind real servers: the shop's tools, the model, and the tools over MCP."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from scenarios.practice import model_server, tool_server


@asynccontextmanager
async def serve_practice_world(
    book: Path, *, mcp: bool = False, log: Path | None = None
) -> AsyncIterator[dict[str, tuple[str, int]]]:
    """Serve an order book while the block runs; yield the address behind each host name.

    The hosts are `shop.practice`, `model.practice` and, with `mcp`, `mcp.practice`. `log` is a file
    for the requests that the model gets.
    """
    async with AsyncExitStack() as stack:
        ports = {
            "shop.practice": await stack.enter_async_context(tool_server.serve_tools(book)),
            "model.practice": await stack.enter_async_context(model_server.serve_model(log=log)),
        }
        if mcp:
            from scenarios.practice import mcp_server  # imports the MCP SDK, an extra

            serving = mcp_server.serve_mcp_order_book(book)
            ports["mcp.practice"] = await stack.enter_async_context(serving)
        yield {name: ("127.0.0.1", port) for name, port in ports.items()}
