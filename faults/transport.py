"""T: timing and transport. The answer is late, never comes, or breaks off."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log
from random import Random
from typing import Annotated, Literal

from faults.body import NoSite
from faults.operator import Between, Shows, operator
from traces import sse
from traces.dialects import lens, mcp, openai_chat
from traces.dialects.failing import failing
from traces.encoding import plain
from traces.model import Chunk, Exchange, Place, Response, header

_LATE: Mapping[Place, Shows] = {
    "http": Shows("none", "the same answer, later"),
    "mcp": Shows("none", "the same result, later", True, "none"),
    "model": Shows("none", "the same answer, with its first byte later"),
}
_SILENT: Mapping[Place, Shows] = {
    "http": Shows("http", "no answer until the client or the cap gives up"),
    "mcp": Shows(
        "http",
        "no result, with or without notifications of progress; over stdio, in the end, the error "
        "of a client that timed out",
        True,
        "jsonrpc",
    ),
    "model-boundary": Shows("text", "the words of a client that timed out"),
    "model": Shows("http", "no answer until the client or the cap gives up"),
}
_BROKEN: Mapping[Place, Shows] = {
    "http": Shows("http", "an answer that breaks off, or an error event in a stream"),
    "mcp": Shows(
        "http",
        "an answer or a stream that ends without its result; over stdio the server is gone",
        True,
        "jsonrpc",
    ),
    "model-boundary": Shows("text", "the words of a client whose connection broke"),
    "model": Shows("http", "a stream that breaks off after some events, or an error event in it"),
}
_BEAT = 1.0
"""Seconds between two signs of life."""


@operator("T1", shows=_LATE)
def delay(
    exchange: Exchange,
    rng: Random,
    *,
    ms: Annotated[float, Between(0, 3_600_000)] = 1000.0,
    jitter_ms: Annotated[float, Between(0, 3_600_000)] = 0.0,
    dist: Literal["uniform", "normal", "exponential"] = "uniform",
) -> Exchange:
    """Hold the whole answer back by `ms`, give or take `jitter_ms`.

    Incident: a cold start, a garbage collection pause, a queue that filled up. `dist` is how the
    jitter falls: `uniform` within its bounds, `normal` with it as deviation, `exponential` with
    it as mean, and only ever later.
    """
    match dist:
        case "normal":
            by = rng.gauss(0, jitter_ms)
        case "exponential":
            by = -jitter_ms * log(1 - rng.random())
        case _:
            by = rng.uniform(-jitter_ms, jitter_ms)
    return exchange.later(max(0.0, ms + by) / 1000)


@operator("T2", forwards=False, shows=_SILENT)
def hang(
    exchange: Exchange,
    rng: Random,
    *,
    cap_ms: Annotated[float, Between(1, 600_000)] = 600_000.0,
    progress: bool = False,
) -> Exchange:
    """Never answer; after `cap_ms` the connection ends. The tool never sees the request.

    Incident: a stuck worker, a message lost in a queue. With `progress` the head of an answer
    and a blank each second keep the connection alive, and the answer still never comes: blanks
    that no server sent are the only bytes this makes up. Over MCP it is a notification of progress
    each second, or a comment in the stream where the client wants to hear of none.
    """
    seconds = cap_ms / 1000
    if not progress:
        return replace(exchange, response=None, error=f"timeout: {seconds:g} s")
    begin, (kind, sign) = exchange.started, _sign_of_life(exchange)
    alive = Response(
        status=200,
        headers=(("content-type", kind), ("transfer-encoding", "chunked")),
        chunks=tuple(
            Chunk(at=begin + beat * _BEAT, data=sign(beat))
            for beat in range(int(seconds / _BEAT) + 1)
        ),
        at=begin,
    )
    left = seconds % _BEAT
    return replace(exchange, response=alive, error=f"timeout: {left:g} s")


def _sign_of_life(exchange: Exchange) -> tuple[str, Callable[[int], bytes]]:
    """The type of an answer that never ends, and what it says at each beat."""
    if mcp.message(exchange.request) is None:
        return "application/json", lambda beat: b" "
    token, stdio = mcp.progress_token(exchange.request), exchange.transport == "stdio"
    if token is None and stdio:
        raise NoSite("the client wants to hear of no progress")
    if token is None:
        return "text/event-stream", lambda beat: b": ping\r\n\r\n"

    def told(beat: int) -> bytes:
        said = b'{"jsonrpc":"2.0","method":"notifications/progress","params":'
        said += b'{"progressToken":%s,"progress":%d}}' % (token.encode(), beat)
        return said if stdio else b"event: message\r\ndata: " + said + b"\r\n\r\n"

    return "text/event-stream", told


@operator("T3", shows=_BROKEN)
def cut(
    exchange: Exchange,
    rng: Random,
    *,
    after_bytes: Annotated[int, Between(-1, 1 << 40)] = -1,
    after_events: Annotated[int, Between(-1, 1 << 20)] = -1,
    how: Literal["reset", "fin", "sse_error"] = "reset",
) -> Exchange:
    """Break the answer off after so many bytes or events of a stream; in its middle by default.

    Incident: a balancer that closes idle connections, an evicted pod. The tool has done its
    work. With 0 bytes not even the head comes. `how` ends the connection with a reset, politely
    (`fin`), or, in a stream of events, with an error event in place of the rest (`sse_error`):
    this event, in the words of the stream's own provider, is the only thing it makes up.
    """
    answer = exchange.response
    if answer is None:
        raise NoSite("there is no answer to break off")
    if how == "sse_error" and mcp.message(exchange.request) is not None:
        raise NoSite("MCP has no error event; its error is a response: strike with protocol_error")
    events = sse.ends(_stream(answer, after_events, how))
    whole = len(answer.body)
    if after_events >= 0 or (how == "sse_error" and after_bytes < 0):
        after = after_events if after_events >= 0 else len(events) // 2
        if after >= len(events):
            raise NoSite(f"the stream has no more than {len(events)} events")
        keep = events[after - 1] if after else 0
    else:
        keep = after_bytes if after_bytes >= 0 else whole // 2
    if keep >= whole:
        raise NoSite(f"the answer has no more than {whole} bytes")
    if how == "sse_error":  # an event in the middle of another would be none
        keep = max((end for end in events if end <= keep), default=0)
    kept = _kept(answer.chunks, keep)
    if how == "sse_error":
        at = kept[-1].at if kept else answer.at
        last = Chunk(at=at, data=_error_event(exchange))
        headers = tuple(each for each in answer.headers if each[0].lower() != "content-length")
        bent = replace(answer, headers=headers, chunks=(*kept, last), ended=at)
        return replace(exchange, response=bent, error=None)
    error = "eof" if how == "fin" else "reset"
    if not keep:
        return replace(exchange, response=None, error=error)
    cut = replace(answer, chunks=kept, trailers=(), ended=None)
    return replace(exchange, response=cut, error=error)


def _stream(answer: Response, after_events: int, how: str) -> bytes:
    """The events of an answer; NoSite where it has to have some, and has none."""
    kind = (header(answer.headers, "content-type") or "").partition(";")[0].strip()
    if kind == "text/event-stream" and plain(answer.headers, answer.body) == answer.body:
        return answer.body
    if after_events >= 0 or how == "sse_error":
        raise NoSite("the answer is no stream of events")
    return b""


def _kept(chunks: tuple[Chunk, ...], keep: int) -> tuple[Chunk, ...]:
    kept = []
    for chunk in chunks:
        if keep <= 0:
            break
        kept.append(replace(chunk, data=chunk.data[:keep]))
        keep -= len(chunk.data)
    return tuple(kept)


def _error_event(exchange: Exchange) -> bytes:
    """What a model's provider sends when it breaks down in the middle of a stream."""
    dialect = lens(exchange.request)
    amiss = failing(dialect or openai_chat)
    if amiss is None:
        raise NoSite("nobody has said how a stream of this dialect breaks off")
    return amiss.breakdown()
