"""A program without a model that uses a shop over MCP: `mcp_program.py HABIT WHERE ORDER`.

WHERE is a URL, or the command of a server over stdio. The program refunds a tenth of an order; one
with the habit `hasty` sends a refund that failed again, one with `reconnects` does so in another
session, one with `careful` reports it.
"""

import asyncio
import json
import shlex
import sys
from typing import Any

from mcp import Client, MCPError, StdioServerParameters


async def main(habit: str, where: str, order: str) -> str:
    words = shlex.split(where)
    server = StdioServerParameters(command=words[0], args=words[1:])
    target = where if "://" in where else server
    async with Client(target, mode="legacy") as client:

        async def call(
            tool: str, *, session: Client = client, **arguments: object
        ) -> dict[str, Any]:
            try:
                result = await session.call_tool(tool, arguments)
                part = result.content[0]
                value = json.loads(part.text) if part.type == "text" else None
            except (MCPError, ValueError) as error:
                return {"error": str(error)}
            return value if isinstance(value, dict) and not result.is_error else {"error": value}

        found = await call("get_order", order_id=order)
        if "error" in found:
            return f"I could not read order {order}, so nothing was refunded: {found['error']}"
        amount, currency = round(found["amount"] / 10, 2), found["currency"]
        wanted = {"order_id": order, "amount": amount, "currency": currency, "reason": "late"}
        paid = await call("issue_refund", **wanted)
        if "error" in paid and habit == "hasty":
            paid = await call("issue_refund", **wanted)
        if "error" in paid and habit == "reconnects":
            async with Client(target, mode="legacy") as other:
                paid = await call("issue_refund", session=other, **wanted)
        if "error" in paid:
            return f"I could not refund order {order}: {paid['error']}"
        return f"Done: order {order} got a refund of {paid['amount']}."


sys.stdout.write(asyncio.run(main(*sys.argv[1:])) + "\n")
