"""A clinic over MCP on stdio, with its bookings in memory."""

import json
import uuid

from mcp.server.mcpserver import MCPServer

server = MCPServer("clinic")
booked: list[dict[str, str]] = []


@server.tool()
def get_slots(day: str) -> str:
    return json.dumps({"slots": [{"id": "slot-0900", "price": 1284}], "day": day})


@server.tool()
def book_slot(slot: str, price: int = 0) -> str:
    booked.append({"id": f"bk-{uuid.uuid4().hex[:6]}7", "slot": slot})
    return json.dumps(booked[-1])


@server.tool()
def get_bookings(patient: str) -> str:
    return json.dumps({"bookings": booked})


server.run("stdio")
