"""A tool's result as an exchange, and a bent exchange as the text a client would show.

So one operator serves every place: what is no HTTP is asked `CALL tool:NAME` and answered 200.
"""

from faults.body import NoSite, text
from traces.conversation import Call
from traces.model import Chunk, Exchange, Request, Response
from traces.step import Result

_BROKEN = {
    "timeout": "Error: the request timed out",
    "reset": "Error: connection reset by peer",
    "refused": "Error: connection refused",
    "eof": "Error: the connection was closed before the response was complete",
}


def as_exchange(seq: int, result: Result, call: Call) -> Exchange:
    """A tool result as an exchange."""
    request = Request(method="CALL", url=f"tool:{call.tool}", body=call.arguments.encode())
    chunk = Chunk(at=0.0, data=result.text.encode("utf-8", "surrogatepass"))
    return Exchange(
        seq=seq, request=request, response=Response(status=200, chunks=(chunk,), ended=0.0)
    )


def failed(bent: Exchange) -> bool:
    """Whether it says so itself, by its status or by breaking off."""
    return bent.error is not None or bent.response is None or bent.response.status >= 400


def rendered(bent: Exchange) -> str:
    """The text a client would show: the body, the status and the body, or how it broke off."""
    if bent.error is not None:
        code = bent.error.partition(":")[0]
        return _BROKEN.get(code, f"Error: {code}")
    if bent.response is None:
        raise NoSite("there is no answer to show")
    body = text(bent)
    return body if bent.response.status < 400 else f"HTTP {bent.response.status}: {body}"
