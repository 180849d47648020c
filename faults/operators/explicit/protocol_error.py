"""E3 protocol_error: a JSON-RPC error in place of an MCP result."""

from collections.abc import Mapping
from random import Random
from typing import Annotated

from faults.operator import FaultVisibility, NumberRange, operator
from faults.operators.explicit.error_bodies import encode_json_body
from faults.response_body import is_bare_result, respond_with_status
from traces.model import Exchange, Place

_PROTOCOL: Mapping[Place, FaultVisibility] = {
    "mcp": FaultVisibility(
        "jsonrpc", "a JSON-RPC `error` with this code, which clients may keep back", True, "jsonrpc"
    ),
    "model-boundary": FaultVisibility("text", "the words of an MCP client that was told so"),
}


@operator("E3", forwards=False, shows=_PROTOCOL)
def protocol_error(
    exchange: Exchange,
    rng: Random,
    *,
    code: Annotated[int, NumberRange(-32768, -32000)] = -32603,
) -> Exchange:
    """Answer a call with a JSON-RPC error and no result.

    Incident: client and server of different versions, a server that failed. MCP clients may
    withhold such an error from the model. The operator returns the error object as the response
    body; its message is fabricated.
    """
    words = {
        -32700: "Parse error",
        -32600: "Invalid Request",
        -32601: "Method not found",
        -32602: "Invalid params",
        -32603: "Internal error",
    }
    message = words.get(code, "Server error")
    if is_bare_result(exchange):
        return respond_with_status(
            exchange, 200, f"MCP error {code}: {message}".encode(), kind="text/plain"
        )
    return respond_with_status(exchange, 500, encode_json_body({"code": code, "message": message}))
