"""Inject a fault into a model's turn over a WebSocket, by way of the equivalent event stream.

The events are the same, one per message. Messages have no status: a response that is not a stream
becomes the error event that providers send, and an event that was cut in the middle is dropped.
"""

import json
from copy import replace

from faults.errors import NoInjectionSite
from traces.bodies import sse
from traces.model import Chunk, Exchange, Response

_HEADERS = (("content-type", "text/event-stream"),)


def to_stream_exchange(turn: Exchange) -> Exchange:
    """Return the turn as an HTTP exchange with its messages as events."""
    if (answer := turn.response) is None:
        return turn
    chunks = tuple(replace(c, data=b"data: " + c.data + b"\n\n") for c in answer.chunks)
    return replace(turn, response=replace(answer, status=200, headers=_HEADERS, chunks=chunks))


def to_message_exchange(turn: Exchange, exchange: Exchange) -> Exchange:
    """Return the turn with the changed stream as messages.

    Raises NoInjectionSite if the change cannot be expressed in messages.
    """
    answer = exchange.response
    if answer is None or exchange == to_stream_exchange(turn):
        return replace(turn, response=answer and turn.response, error=exchange.error)
    if answer.status < 400 and ("content-type", "text/event-stream") not in _normalize_headers(
        answer
    ):
        raise NoInjectionSite("a WebSocket carries events, and no answer that holds something else")
    chunks = _to_error_message(answer) if answer.status >= 400 else _to_event_messages(answer)
    original = turn.response
    response = Response(
        status=101,
        headers=original.headers if original else (),
        trailers=original.trailers if original and exchange.error is None else (),
        chunks=chunks,
        at=answer.at,
        ended=answer.ended,
    )
    return replace(turn, response=response, error=exchange.error)


def _normalize_headers(answer: Response) -> list[tuple[str, str]]:
    return [(name.lower(), value.partition(";")[0]) for name, value in answer.headers]


def _to_event_messages(answer: Response) -> tuple[Chunk, ...]:
    return tuple(
        Chunk(at=chunk.at, data=event.data.encode())
        for chunk in answer.chunks
        for event in sse.parse_sse_events(chunk.data)
        if event.data != "[DONE]"
    )


def _to_error_message(answer: Response) -> tuple[Chunk, ...]:
    try:
        payload = json.loads(answer.body)
    except ValueError:
        payload = {"message": answer.body.decode("utf-8", "replace")}
    error = payload.get("error", payload) if isinstance(payload, dict) else payload
    event = {"type": "error", "status": answer.status, "error": error}
    return (Chunk(at=answer.at, data=json.dumps(event).encode()),)
