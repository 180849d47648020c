"""T2 hang: no response arrives before the client or the cap times out."""

from collections.abc import Callable, Mapping
from copy import replace
from random import Random
from typing import Annotated

from faults.operator import FaultVisibility, NumberRange, operator
from faults.response_body import NoInjectionSite
from traces.dialects import mcp
from traces.model import Chunk, Exchange, Place, Response

_SILENT: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("http", "no answer until the client or the cap gives up"),
    "mcp": FaultVisibility(
        "http",
        "no result, with or without notifications of progress; over stdio, in the end, the error "
        "of a client that timed out",
        True,
        "jsonrpc",
    ),
    "model-boundary": FaultVisibility("text", "the words of a client that timed out"),
    "model": FaultVisibility("http", "no answer until the client or the cap gives up"),
}
_BEAT = 1.0
"""Seconds between two keep-alive messages."""


@operator("T2", forwards=False, shows=_SILENT)
def hang(
    exchange: Exchange,
    rng: Random,
    *,
    cap_ms: Annotated[float, NumberRange(1, 600_000)] = 600_000.0,
    progress: bool = False,
) -> Exchange:
    """Never answer; after `cap_ms` the connection ends. The tool never receives the request.

    Incident: a stuck worker, a message lost in a queue. With `progress` a response head and a space
    each second keep the connection alive, but the response never arrives. These keep-alive bytes
    are the only fabricated part. Over MCP they are a progress notification each second, or a
    comment in the event stream if the client did not ask for progress.
    """
    seconds = cap_ms / 1000
    if not progress:
        return replace(exchange, response=None, error=f"timeout: {seconds:g} s")
    start, (kind, make_beat) = exchange.started, _make_keepalive(exchange)
    alive = Response(
        status=200,
        headers=(("content-type", kind), ("transfer-encoding", "chunked")),
        chunks=tuple(
            Chunk(at=start + beat * _BEAT, data=make_beat(beat))
            for beat in range(int(seconds / _BEAT) + 1)
        ),
        at=start,
    )
    rest = seconds % _BEAT
    return replace(exchange, response=alive, error=f"timeout: {rest:g} s")


def _make_keepalive(exchange: Exchange) -> tuple[str, Callable[[int], bytes]]:
    """Return the content type of the endless response, and a function from beat to its bytes."""
    if mcp.read_client_message(exchange.request) is None:
        return "application/json", lambda beat: b" "
    token, stdio = mcp.read_progress_token(exchange.request), exchange.transport == "stdio"
    if token is None and stdio:
        raise NoInjectionSite("the client wants to hear of no progress")
    if token is None:
        return "text/event-stream", lambda beat: b": ping\r\n\r\n"

    def make_notification(beat: int) -> bytes:
        message = b'{"jsonrpc":"2.0","method":"notifications/progress","params":'
        message += b'{"progressToken":%s,"progress":%d}}' % (token.encode(), beat)
        return message if stdio else b"event: message\r\ndata: " + message + b"\r\n\r\n"

    return "text/event-stream", make_notification
