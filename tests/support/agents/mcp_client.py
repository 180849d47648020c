"""A client that uses every MCP feature: python mcp_client.py WHERE [MODE], a URL or a command.

It prints the received messages as JSON, so that two sessions can be compared. The server is
`servers/mcp_server.py`.
"""

import asyncio
import json
import shlex
import sys

from mcp import Client, MCPError, StdioServerParameters

LIMIT = 60.0


async def main(where: str, mode: str = "legacy") -> dict[str, object]:
    words = shlex.split(where)
    server = StdioServerParameters(command=words[0], args=words[1:])
    heard: list[object] = []

    async def told(params: object) -> None:
        heard.append(getattr(params, "data", None))

    target = where if "://" in where else server
    async with Client(
        target, mode=mode, read_timeout_seconds=LIMIT, logging_callback=told
    ) as client:

        async def call(tool: str, **arguments: object) -> str:
            result = await client.call_tool(tool, arguments)
            return "".join(part.text for part in result.content if part.type == "text")

        names = [tool.name for tool in (await client.list_tools()).tools]
        texts = (f"text {n}" for n in range(8))
        parallel = await asyncio.gather(*(call("echo", text=text) for text in texts))
        steps: list[float] = []

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        await client.call_tool("progress", {"steps": 3}, progress_callback=progress)
        try:
            refused = await call("refuse")
        except MCPError as error:
            refused = f"{error.code}: {error.message}"
        waits = asyncio.create_task(call("hang"))
        await call("echo", text="while the other one waits")
        waits.cancel()
        await asyncio.wait((waits,))
        await call("notify", data="unasked", level="info")
        last = await call("echo", text="last")
    return {
        "tools": names,
        "parallel": parallel,
        "progress": steps,
        "refused": refused,
        "cancelled": waits.cancelled(),
        "heard": heard,
        "last": last,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(*sys.argv[1:]))) + "\n")
