"""E6 session_lost: an MCP server that no longer knows the session of its client."""

from collections.abc import Mapping
from random import Random

from faults.operator import FaultVisibility, operator
from faults.response_body import respond_with_unknown_session
from traces.model import Exchange, Place

_UNKNOWN: Mapping[Place, FaultVisibility] = {
    "mcp": FaultVisibility(
        "http", "404 for all messages of the session; over stdio there is none, and no site", True
    ),
}


@operator("E6", forwards=False, shows=_UNKNOWN, ends_session=True)
def session_lost(exchange: Exchange, rng: Random) -> Exchange:
    """Answer 404 to a call and to all later messages of its MCP session, until `initialize`.

    Incident: a server that restarted, or a load balancer that moved the client to another one. A
    client begins a new session then (2025-11-25); one without a session has no site. The body is
    fabricated.
    """
    return respond_with_unknown_session(exchange)
