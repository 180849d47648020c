"""X: what the tool says and what it did are two things."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Literal

from faults.body import NoSite, answer, is_call
from faults.operator import Shows, operator
from faults.seen import NOTHING, Seen
from traces.dialects import mcp
from traces.model import Exchange, Place, Response

_ACKNOWLEDGED: Mapping[Place, Shows] = {
    "http": Shows("none", "the recorded acknowledgement, and nothing is forwarded"),
    "mcp": Shows(
        "none", "the recorded acknowledgement, and the server is not called", True, "none"
    ),
}
_LOST: Mapping[Place, Shows] = {
    "http": Shows("http", "a failure after the tool has done its work"),
    "mcp": Shows(
        "http",
        "a failure after the tool has done its work; over stdio an error of the protocol",
        True,
        "jsonrpc",
    ),
    "model-boundary": Shows("text", "the words of a client whose call failed"),
}


_GATEWAY = {"status_502": (502, "Bad Gateway"), "status_504": (504, "Gateway Time-out")}


@operator("X1", forwards=False, shows=_ACKNOWLEDGED, needs=("write", "world"))
def silent_noop(exchange: Exchange, rng: Random, *, seen: Seen = NOTHING) -> Exchange:
    """Acknowledge a write that never happens: the tool does not see the request.

    Incident: a dropped event, a dry-run flag that was left on. The acknowledgement is that of
    the same call in the recording, else the latest of the same tool; none is made up. In a live
    run it is the latest before it.
    """
    said = _acknowledgement(exchange, seen)
    if is_call(exchange):
        raise NoSite("a local tool has done its work when its result is seen")
    at = exchange.started
    chunks = tuple(replace(chunk, at=at) for chunk in said.chunks)
    ended = None if said.ended is None else at
    return replace(exchange, response=replace(said, at=at, chunks=chunks, ended=ended), error=None)


def _acknowledgement(exchange: Exchange, seen: Seen) -> Response:
    for said in seen.answers(seen.tool):
        if _acknowledges(said):
            return said
    raise NoSite("no acknowledgement of this tool was seen")


def _acknowledges(said: Response) -> bool:
    """Whether the tool says that it has done its work; over MCP a status of 200 says nothing."""
    reply = mcp.read(said.headers, said.body)
    if reply is not None:
        return reply.is_error is False
    return said.ended is not None and said.status < 300


@operator("X2", shows=_LOST, needs=("write", "world"))
def lost_ack(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal["status_502", "status_504", "reset", "timeout"] = "status_504",
) -> Exchange:
    """Let the tool do its work, and then fail: the effect is there, its acknowledgement is not.

    Incident: a time-out after the commit. `how` says what the client gets: a status of a gateway
    whose words are made up, a connection that is reset, or silence.
    """
    done = exchange.response
    reply = mcp.read(done.headers, done.body) if done else None
    if done is None or done.status >= 400 or (reply and reply.is_error):
        raise NoSite("the tool did not do its work")
    match how:
        case "timeout":
            return replace(exchange, response=None, error="timeout")
        case "reset":
            return replace(exchange, response=None, error="reset")
        case _:
            at = done.at
            code, phrase = _GATEWAY[how]
            body = f"<html><body><h1>{code} {phrase}</h1></body></html>\n".encode()
            bent = answer(exchange, code, body, kind="text/html")
            assert bent.response is not None
            chunks = tuple(replace(chunk, at=at) for chunk in bent.response.chunks)
            late = replace(bent.response, at=at, chunks=chunks, ended=at)
            return replace(bent, response=late)
