"""X2 lost_ack: a write is executed and its response is lost."""

from collections.abc import Mapping
from copy import replace
from random import Random
from typing import Literal

from faults.operator import FaultVisibility, operator
from faults.response_body import NoInjectionSite, respond_with_status
from traces.dialects import mcp
from traces.model import Exchange, Place

_LOST: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("http", "a failure after the tool has done its work"),
    "mcp": FaultVisibility(
        "http",
        "a failure after the tool has done its work; over stdio an error of the protocol",
        True,
        "jsonrpc",
    ),
    "model-boundary": FaultVisibility("text", "the words of a client whose call failed"),
}
_GATEWAY = {"status_502": (502, "Bad Gateway"), "status_504": (504, "Gateway Time-out")}


@operator("X2", shows=_LOST, needs=("write", "world"))
def lost_ack(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal["status_502", "status_504", "reset", "timeout"] = "status_504",
) -> Exchange:
    """Let the tool execute the write, then fail: the effect exists, its acknowledgement is lost.

    Incident: a time-out after the commit. `how` is the failure at the client: a gateway status with
    a fabricated body, a connection reset, or a time-out.
    """
    done = exchange.response
    reply = mcp.parse_mcp_reply(done.headers, done.body) if done else None
    if done is None or done.status >= 400 or (reply and reply.is_error):
        raise NoInjectionSite("the tool did not do its work")
    match how:
        case "timeout":
            return replace(exchange, response=None, error="timeout")
        case "reset":
            return replace(exchange, response=None, error="reset")
        case _:
            at = done.at
            code, phrase = _GATEWAY[how]
            body = f"<html><body><h1>{code} {phrase}</h1></body></html>\n".encode()
            failed = respond_with_status(exchange, code, body, kind="text/html")
            assert failed.response is not None
            chunks = tuple(replace(chunk, at=at) for chunk in failed.response.chunks)
            response = replace(failed.response, at=at, chunks=chunks, ended=at)
            return replace(failed, response=response)
