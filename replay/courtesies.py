"""What a server says to any client, where the recording holds nothing of it."""

import json
from collections.abc import Iterable
from dataclasses import replace

from traces.dialects import mcp
from traces.model import Chunk, Exchange, Response

NO_SUCH_METHOD = -32601
"""By JSON-RPC; a client that asks for the newer protocol then goes on with the older one."""
_SAYS: dict[str, dict[str, object]] = {
    "ping": {"result": {}},
    "server/discover": {"error": {"code": NO_SUCH_METHOD, "message": "Method not found"}},
}


class Courtesies:
    """A tap before a player: another client than the recorded one may ask for these as well."""

    def __init__(self, server: Iterable[Exchange]) -> None:
        asked = (mcp.message(exchange.request) for exchange in server)
        known = {said.method for said in asked if said is not None}
        self._says = {method: said for method, said in _SAYS.items() if method not in known}

    def request(self, exchange: Exchange) -> Exchange:
        """Answer what the recorded client had no need to ask."""
        said = mcp.message(exchange.request)
        if said is None or said.role != "talk" or said.method not in self._says:
            return exchange
        id = json.loads(exchange.request.body)["id"]
        body = json.dumps({"jsonrpc": "2.0", "id": id} | self._says[said.method]).encode()
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
