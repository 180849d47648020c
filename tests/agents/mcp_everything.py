"""A client of server-everything: python mcp_everything.py URL, or the words of its command."""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main(first: str, *args: str) -> None:
    """Ask for the tools and call two of them; what they say is printed."""
    server = StdioServerParameters(command=first, args=[*args], env=dict(os.environ))
    async with Client(first if first.startswith("http") else server) as client:
        named = [tool.name for tool in (await client.list_tools()).tools]
        echoed = await client.call_tool("echo", {"message": "hello"})
        added = await client.call_tool("get-sum", {"a": 23, "b": 42})
        texts = [part.text for part in (*echoed.content, *added.content) if part.type == "text"]
    sys.stdout.write(json.dumps(["get-sum" in named, *texts]) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
