"""A model's turn over a WebSocket, bent as the stream of events that it would be over HTTP.

The same events come one a message. A status has no place there: what is no stream is told as the
error event that providers send, and what broke off inside an event never was a message.
"""

import json
from dataclasses import replace

from faults.nosite import NoSite
from traces import sse
from traces.model import Chunk, Exchange, Response

_HEADERS = (("content-type", "text/event-stream"),)


def as_stream(turn: Exchange) -> Exchange:
    """The turn with its messages as events."""
    if (answer := turn.response) is None:
        return turn
    chunks = tuple(replace(c, data=b"data: " + c.data + b"\n\n") for c in answer.chunks)
    return replace(turn, response=replace(answer, status=200, headers=_HEADERS, chunks=chunks))


def as_messages(turn: Exchange, bent: Exchange) -> Exchange:
    """The turn with what became of its stream; NoSite for what nobody can say in messages."""
    answer = bent.response
    if answer is None or bent == as_stream(turn):
        return replace(turn, response=answer and turn.response, error=bent.error)
    if answer.status < 400 and ("content-type", "text/event-stream") not in _kinds(answer):
        raise NoSite("a WebSocket carries events, and no answer that holds something else")
    chunks = _error(answer) if answer.status >= 400 else _events(answer)
    was = turn.response
    told = Response(
        status=101,
        headers=was.headers if was else (),
        trailers=was.trailers if was and bent.error is None else (),
        chunks=chunks,
        at=answer.at,
        ended=answer.ended,
    )
    return replace(turn, response=told, error=bent.error)


def _kinds(answer: Response) -> list[tuple[str, str]]:
    return [(name.lower(), value.partition(";")[0]) for name, value in answer.headers]


def _events(answer: Response) -> tuple[Chunk, ...]:
    return tuple(
        Chunk(at=chunk.at, data=event.data.encode())
        for chunk in answer.chunks
        for event in sse.events(chunk.data)
        if event.data != "[DONE]"
    )


def _error(answer: Response) -> tuple[Chunk, ...]:
    try:
        said = json.loads(answer.body)
    except ValueError:
        said = {"message": answer.body.decode("utf-8", "replace")}
    error = said.get("error", said) if isinstance(said, dict) else said
    event = {"type": "error", "status": answer.status, "error": error}
    return (Chunk(at=answer.at, data=json.dumps(event).encode()),)
