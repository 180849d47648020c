"""The official MCP SDK's client as blocking functions, for an agent without asyncio."""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import httpx2
from anyio import ClosedResourceError
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, MCPError, StdioServerParameters
from openai.types.chat import ChatCompletionToolParam

SDK_MODES = {"auto": "auto", "2026-07-28": "2026-07-28", "2025-11-25": "legacy"}
"""Protocol versions and the SDK's mode names; auto negotiates with the server."""

type OfferedTools = tuple[ChatCompletionToolParam, ...]


@contextmanager
def open_mcp_tools(
    server: str, *, version: str, timeout: float
) -> Iterator[tuple[OfferedTools, Callable[[str, str], str]]]:
    """Yield the tool definitions of a server, given by URL or command, and a function to call
    them.
    """
    address = server if "://" in server else _parse_server_command(server)
    client = Client(address, mode=SDK_MODES[version], read_timeout_seconds=timeout)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield _list_mcp_tools(portal, client), partial(_call_mcp_tool, portal, client)


def _parse_server_command(text: str) -> StdioServerParameters:
    program, *arguments = shlex.split(text)
    return StdioServerParameters(command=program, args=arguments)


def _list_mcp_tools(portal: BlockingPortal, client: Client) -> OfferedTools:
    return tuple(
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.input_schema,
            },
        }
        for tool in portal.call(client.list_tools).tools
    )


def _call_mcp_tool(portal: BlockingPortal, client: Client, name: str, arguments: str) -> str:
    try:
        parsed = json.loads(arguments)
        result = portal.call(client.call_tool, name, parsed)
    except MCPError as error:
        return f"error: MCP error {error.code}: {error.message}"
    except (ValueError, RuntimeError, ClosedResourceError, httpx2.HTTPError) as error:
        return f"error: {type(error).__name__}: {error}"
    text = "".join(part.text for part in result.content if part.type == "text")
    return f"error: {text}" if result.is_error else text
