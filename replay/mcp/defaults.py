"""Default answers to MCP requests that any client may make but the recording does not contain."""

import json
from collections.abc import Iterable
from copy import replace

from traces.dialects import mcp
from traces.model import Chunk, Exchange, Response

NO_SUCH_METHOD = -32601
"""JSON-RPC code; a client that asks for the newer protocol then continues with the older one."""
_DEFAULT_ANSWERS: dict[str, dict[str, object]] = {
    "ping": {"result": {}},
    "server/discover": {"error": {"code": NO_SUCH_METHOD, "message": "Method not found"}},
}


class McpDefaults:
    """A tap before a player: answers requests that only another client may make."""

    def __init__(self, server: Iterable[Exchange]) -> None:
        messages = (mcp.read_client_message(exchange.request) for exchange in server)
        recorded_methods = {message.method for message in messages if message is not None}
        self._says = {
            method: message
            for method, message in _DEFAULT_ANSWERS.items()
            if method not in recorded_methods
        }

    def request(self, exchange: Exchange) -> Exchange:
        """Answer a request that the recorded client did not make."""
        message = mcp.read_client_message(exchange.request)
        if message is None or message.role != "talk" or message.method not in self._says:
            return exchange
        id = json.loads(exchange.request.body)["id"]
        body = json.dumps({"jsonrpc": "2.0", "id": id} | self._says[message.method]).encode()
        at = exchange.started
        answer = Response(
            status=200,
            reason="OK",
            headers=(("content-type", "application/json"), ("content-length", str(len(body)))),
            chunks=(Chunk(at=at, data=body),),
            at=at,
            ended=at,
        )
        return replace(exchange, response=answer, answered_by="simulated")
