"""X1 silent_noop: a write is acknowledged and never executed."""

from collections.abc import Mapping
from copy import replace
from random import Random

from faults.operator import FaultVisibility, operator
from faults.response_body import NoInjectionSite, is_bare_result
from faults.targeting.observations import NO_OBSERVATIONS, CleanObservations
from traces.dialects import mcp
from traces.model import Exchange, Place, Response

_ACKNOWLEDGED: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("none", "the recorded acknowledgement, and nothing is forwarded"),
    "mcp": FaultVisibility(
        "none", "the recorded acknowledgement, and the server is not called", True, "none"
    ),
}


@operator("X1", forwards=False, shows=_ACKNOWLEDGED, needs=("write", "world"))
def silent_noop(
    exchange: Exchange, rng: Random, *, seen: CleanObservations = NO_OBSERVATIONS
) -> Exchange:
    """Acknowledge a write that never happens: the tool does not receive the request.

    Incident: a dropped event, a dry-run flag left on. The acknowledgement is that of the same call
    in the recording, else the latest of the same tool; it is never fabricated. In a live run it is
    the latest one before this call.
    """
    acknowledgement = _find_acknowledgement(exchange, seen)
    if is_bare_result(exchange):
        raise NoInjectionSite("a local tool has done its work when its result is seen")
    at = exchange.started
    chunks = tuple(replace(chunk, at=at) for chunk in acknowledgement.chunks)
    ended = None if acknowledgement.ended is None else at
    return replace(
        exchange, response=replace(acknowledgement, at=at, chunks=chunks, ended=ended), error=None
    )


def _find_acknowledgement(exchange: Exchange, seen: CleanObservations) -> Response:
    for response in seen.find_answers(seen.tool):
        if _is_acknowledgement(response):
            return response
    raise NoInjectionSite("no acknowledgement of this tool was seen")


def _is_acknowledgement(response: Response) -> bool:
    """Return whether a response reports success; over MCP status 200 alone does not."""
    reply = mcp.parse_mcp_reply(response.headers, response.body)
    if reply is not None:
        return reply.is_error is False
    return response.ended is not None and response.status < 300
