"""Convert a tool's result to an exchange, and a changed exchange to the text a client would show.

So one operator serves every place: a result without HTTP has the request `CALL tool:NAME` and
status 200.
"""

from faults.response_body import NoInjectionSite, decode_response_text
from traces.conversation.tracker import TrackedCall
from traces.dialects.types import ToolResult
from traces.model import Chunk, Exchange, Request, Response

_BROKEN = {
    "timeout": "Error: the request timed out",
    "reset": "Error: connection reset by peer",
    "refused": "Error: connection refused",
    "eof": "Error: the connection was closed before the response was complete",
}


def to_tool_exchange(seq: int, result: ToolResult, call: TrackedCall) -> Exchange:
    """Return a tool result as an exchange."""
    request = Request(method="CALL", url=f"tool:{call.tool}", body=call.arguments.encode())
    chunk = Chunk(at=0.0, data=result.text.encode("utf-8", "surrogatepass"))
    return Exchange(
        seq=seq, request=request, response=Response(status=200, chunks=(chunk,), ended=0.0)
    )


def is_visible_failure(exchange: Exchange) -> bool:
    """Return whether the exchange shows its failure, by status or broken connection."""
    return (
        exchange.error is not None or exchange.response is None or exchange.response.status >= 400
    )


def render_tool_result(exchange: Exchange) -> str:
    """Return the text a client would show: the body, status and body, or the failure."""
    if exchange.error is not None:
        code = exchange.error.partition(":")[0]
        return _BROKEN.get(code, f"Error: {code}")
    if exchange.response is None:
        raise NoInjectionSite("there is no answer to show")
    body = decode_response_text(exchange)
    return body if exchange.response.status < 400 else f"HTTP {exchange.response.status}: {body}"
