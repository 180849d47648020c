"""An agent with a stdio MCP server beside this file, and a model at BASE; `mcp_agent.py BASE`."""

import asyncio
import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = Path(__file__).with_name("mcp_server.py")


def ask_model(messages: list[Any], tools: list[Any]) -> Any:
    body = json.dumps({"model": "clinic-1", "messages": messages, "tools": tools}).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{sys.argv[1]}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())["choices"][0]["message"]


async def main() -> None:
    parameters = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = [
            {"type": "function", "function": {"name": each.name, "parameters": {}}}
            for each in (await session.list_tools()).tools
        ]
        messages: list[Any] = [{"role": "user", "content": "Book Ana the first free slot."}]
        while (message := ask_model(messages, tools)).get("tool_calls"):
            messages.append(message)
            for call in message["tool_calls"]:
                function = call["function"]
                try:
                    result = await session.call_tool(
                        function["name"], json.loads(function["arguments"])
                    )
                    text = getattr(result.content[0], "text", "")
                except Exception as error:  # noqa: BLE001  (the model is to see it)
                    text = f"Error: {error}"
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        sys.stdout.write(f"{message['content']}\n")


asyncio.run(main())
