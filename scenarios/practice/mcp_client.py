"""The tools over MCP, by the official SDK's client, for an agent that knows nothing of asyncio."""

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

VERSIONS = {"auto": "auto", "2026-07-28": "2026-07-28", "2025-11-25": "legacy"}
"""What to speak, and what the SDK calls it; auto asks the server."""

type Offered = tuple[ChatCompletionToolParam, ...]


@contextmanager
def tools(
    server: str, *, version: str, timeout: float
) -> Iterator[tuple[Offered, Callable[[str, str], str]]]:
    """The tools of a server, known by its URL or its command: to offer, and to call."""
    where = server if "://" in server else _command(server)
    client = Client(where, mode=VERSIONS[version], read_timeout_seconds=timeout)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield _offered(portal, client), partial(_call, portal, client)


def _command(text: str) -> StdioServerParameters:
    program, *arguments = shlex.split(text)
    return StdioServerParameters(command=program, args=arguments)


def _offered(portal: BlockingPortal, client: Client) -> Offered:
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


def _call(portal: BlockingPortal, client: Client, name: str, arguments: str) -> str:
    try:
        given = json.loads(arguments)
        result = portal.call(client.call_tool, name, given)
    except MCPError as error:
        return f"error: MCP error {error.code}: {error.message}"
    except (ValueError, RuntimeError, ClosedResourceError, httpx2.HTTPError) as error:
        return f"error: {type(error).__name__}: {error}"
    text = "".join(part.text for part in result.content if part.type == "text")
    return f"error: {text}" if result.is_error else text
