"""An agent on MCP's SDK that calls one tool of a server and answers what the server asks.

    python -m tests.support.agents.asked_agent MODEL_URL TOOL MODE URL | COMMAND...

The model at MODEL_URL (`asking_model.py`) is asked for the call, for the sampling that the server
wants, and for the final text. MODE is the version of the protocol: `auto` or `legacy`. A URL of
https is asked over HTTP/2, if the other side speaks it.
"""

import asyncio
import json
import os
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal, cast

import httpx2
import mcp_types as wire
from mcp import Client, StdioServerParameters
from mcp.client._transport import TransportStreams
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from pydantic import FileUrl

CITY = "Ulm"
PAUSE = 0.05
"""Seconds before an elicitation is answered."""
PROMPT = {"role": "user", "content": "Report the amount."}


def chat(url: str, messages: list[dict[str, Any]], tools: list[str]) -> dict[str, Any]:
    """One answer of the model."""
    offered = [{"type": "function", "function": {"name": n, "parameters": {}}} for n in tools]
    body = {"model": "m", "messages": messages} | ({"tools": offered} if offered else {})
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer x"},
    )
    with urllib.request.build_opener().open(request, timeout=60) as answer:
        table: dict[str, Any] = json.load(answer)["choices"][0]["message"]
    return table


def make_http2_client() -> httpx2.AsyncClient:
    """Make a client that speaks HTTP/2 to a server that does."""
    return httpx2.AsyncClient(http2=True, timeout=60)


@asynccontextmanager
async def connect_over_http2(url: str) -> AsyncIterator[TransportStreams]:
    """Open the streams of a server for the SDK's client."""
    async with make_http2_client() as http, streamable_http_client(url, http_client=http) as both:
        yield both


async def main(model: str, tool: str, mode: Literal["auto", "legacy"], *command: str) -> list[str]:
    """Return the progress that was reported and the model's last words."""
    said: list[str] = []

    async def note_progress(progress: float, total: float | None, message: str | None) -> None:
        said.append(f"progress {progress:g}")

    async def sample(
        context: ClientRequestContext, params: wire.CreateMessageRequestParams
    ) -> wire.CreateMessageResult:
        asked = [{"role": "user", "content": f"sampling {len(params.messages)}"}]
        sampled = await asyncio.to_thread(chat, model, asked, [])
        text = wire.TextContent(text=str(sampled["content"]))
        return wire.CreateMessageResult(role="assistant", content=text, model="m")

    async def elicit(
        context: ClientRequestContext, params: wire.ElicitRequestParams
    ) -> wire.ElicitResult:
        await asyncio.sleep(PAUSE)
        return wire.ElicitResult(action="accept", content={"city": CITY})

    async def roots(context: ClientRequestContext) -> wire.ListRootsResult:
        await asyncio.sleep(0.05)
        return wire.ListRootsResult(roots=[wire.Root(uri=FileUrl("file:///desk"))])

    stdio = StdioServerParameters(command=command[0], args=[*command[1:]], env=dict(os.environ))
    server: Any = command[0] if command[0].startswith("http") else stdio
    if command[0].startswith("https"):
        server = connect_over_http2(command[0])
    async with Client(
        server,
        mode=mode,
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
    ) as client:
        tools = [each.name for each in (await client.list_tools()).tools]
        asked = [PROMPT | {"content": f"Report the amount by {tool}."}]
        turn = await asyncio.to_thread(chat, model, asked, tools)
        (call,) = turn["tool_calls"]
        result = await client.call_tool(
            call["function"]["name"],
            json.loads(call["function"]["arguments"]),
            progress_callback=note_progress,
        )
        (part,) = result.content
        told = {"role": "tool", "tool_call_id": call["id"], "content": cast(Any, part).text}
        last = await asyncio.to_thread(chat, model, [*asked, turn, told], tools)
    return [*said, str(last["content"])]


if __name__ == "__main__":
    lines = asyncio.run(main(sys.argv[1], sys.argv[2], cast(Any, sys.argv[3]), *sys.argv[4:]))
    sys.stdout.write("\n".join(lines) + "\n")
