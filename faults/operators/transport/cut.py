"""T3 cut: the response ends before its last byte."""

from collections.abc import Mapping
from copy import replace
from random import Random
from typing import Annotated, Literal

from faults.operator import FaultVisibility, NumberRange, operator
from faults.response_body import NoInjectionSite, keep_first_bytes
from traces.bodies import stream_events
from traces.bodies.content_encoding import decode_content
from traces.dialects import find_dialect, mcp, openai_chat
from traces.dialects.errors import find_dialect_errors
from traces.model import Chunk, Exchange, Place, Response

_BROKEN: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("http", "an answer that breaks off, or an error event in a stream"),
    "mcp": FaultVisibility(
        "http",
        "an answer or a stream that ends without its result; over stdio the server is gone",
        True,
        "jsonrpc",
    ),
    "model-boundary": FaultVisibility("text", "the words of a client whose connection broke"),
    "model": FaultVisibility(
        "http", "a stream that breaks off after some events, or an error event in it"
    ),
}


@operator("T3", shows=_BROKEN)
def cut(
    exchange: Exchange,
    rng: Random,
    *,
    after_bytes: Annotated[int, NumberRange(-1, 1 << 40)] = -1,
    after_events: Annotated[int, NumberRange(-1, 1 << 20)] = -1,
    how: Literal["reset", "fin", "sse_error", "end"] = "reset",
) -> Exchange:
    """Break off the response after some bytes or stream events; by default in the middle.

    Incident: a load balancer that closes idle connections, an evicted pod. The tool has executed
    the request. With 0 bytes not even the response head arrives. `how` ends the connection with a
    reset (`reset`), an orderly close (`fin`), or, in an event stream, an error event in place of
    the rest (`sse_error`), or the stream's own end, so that only the events with a finish are
    missing (`end`). The error event, in the format of the stream's provider, is the only
    fabricated part.
    """
    answer = exchange.response
    if answer is None:
        raise NoInjectionSite("there is no answer to break off")
    if how in ("sse_error", "end") and mcp.read_client_message(exchange.request) is not None:
        raise NoInjectionSite("MCP has no error event; its error is a response: use protocol_error")
    events = _find_event_ends(answer, after_events, how)
    size = len(answer.body)
    is_whole = how in ("sse_error", "end")
    if after_events >= 0 or (is_whole and after_bytes < 0):
        after = after_events if after_events >= 0 else len(events) // 2
        if after >= len(events):
            raise NoInjectionSite(f"the stream has no more than {len(events)} events")
        keep = events[after - 1] if after else 0
    else:
        keep = after_bytes if after_bytes >= 0 else size // 2
    if keep >= size:
        raise NoInjectionSite(f"the answer has no more than {size} bytes")
    if is_whole:  # only whole events, so that what follows can be parsed
        keep = max((end for end in events if end <= keep), default=0)
    chunks = keep_first_bytes(answer.chunks, keep)
    if is_whole:
        at = chunks[-1].at if chunks else answer.at
        headers = tuple(each for each in answer.headers if each[0].lower() != "content-length")
        if how == "sse_error":
            chunks = (*chunks, Chunk(at=at, data=_make_breakdown_event(exchange)))
        failed = replace(answer, headers=headers, chunks=chunks, trailers=(), ended=at)
        return replace(exchange, response=failed, error=None)
    error = "eof" if how == "fin" else "reset"
    if not keep:
        return replace(exchange, response=None, error=error)
    partial = replace(answer, chunks=chunks, trailers=(), ended=None)
    return replace(exchange, response=partial, error=error)


def _find_event_ends(answer: Response, after_events: int, how: str) -> list[int]:
    """Return the offset after each event; raises NoInjectionSite if events are required and
    missing."""
    is_plain = decode_content(answer.headers, answer.body) == answer.body
    if is_plain and stream_events.is_event_stream(answer.headers):
        return stream_events.find_event_ends(answer.headers, answer.body)
    if after_events >= 0 or how in ("sse_error", "end"):
        raise NoInjectionSite("the answer is no stream of events")
    return []


def _make_breakdown_event(exchange: Exchange) -> bytes:
    """Return the error event that the model's provider sends when a stream fails."""
    dialect = find_dialect(exchange.request)
    errors = find_dialect_errors(dialect or openai_chat)
    if errors is None:
        raise NoInjectionSite("nobody has said how a stream of this dialect breaks off")
    return errors.make_stream_error()
