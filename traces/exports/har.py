"""HAR 1.2: what crossed the wire, for everything that shows HTTP, with the times of each chunk.

What HAR has no field for stands in fields of ours, which begin with an underscore as its text
wants: `_chunks` ([when, bytes] of each piece of an answer), `_raw` (base64 of a body as it was on
the wire, where its text is not that), `_exchange` (numbers, exact times, trailers, the error) and,
as Chrome writes them, `_webSocketMessages`; `_closed` says how such a connection ended. So
`traces.formats.har` gives the same exchanges again. What went over stdio is left out by name, and
so are the edits of a fault, since a request has one body here.
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version

from traces.encoding import plain
from traces.exports import LeftOut
from traces.model import Chunk, Exchange, Headers, Request, Response, header
from traces.tape import Tape
from traces.websocket import BINARY, binary, close

type Table = dict[str, object]


def document(tape: Tape) -> tuple[Table, tuple[LeftOut, ...]]:
    """A run as the value of a HAR file; ValueError where nothing of it can stand in one."""
    left = tuple(_left_out(tape))
    turns: dict[int, list[Exchange]] = {}
    for exchange in tape.exchanges:
        if exchange.transport == "websocket" and exchange.stream:
            turns.setdefault(exchange.connection, []).append(exchange)
    entries = [
        _entry(tape, exchange, turns.get(exchange.connection, []))
        for exchange in tape.exchanges
        if exchange.transport == "http" or _opens(exchange)
    ]
    if not entries:
        raise ValueError(left[0].why if left else "it has no exchanges")
    creator = {"name": "stumble", "version": version("stumble")}
    return {"log": {"version": "1.2", "creator": creator, "pages": [], "entries": entries}}, left


def _opens(exchange: Exchange) -> bool:
    return exchange.transport == "websocket" and not exchange.stream


def _left_out(tape: Tape) -> Iterator[LeftOut]:
    for exchange in tape.exchanges:
        what = f"exchange {exchange.seq}"
        if exchange.transport == "stdio":
            yield LeftOut(what=what, why="HAR holds no stdio")
        elif exchange.edits:
            yield LeftOut(what=f"the edits of {what}", why="HAR has one body for a request")


def _entry(tape: Tape, exchange: Exchange, turns: list[Exchange]) -> Table:
    answer, run = exchange.response, tape.trajectory
    end = _end(exchange)
    took = max(end - exchange.started, 0.0) * 1000
    waited = max(answer.at - exchange.started, 0.0) * 1000 if answer else took
    entry: Table = {
        "startedDateTime": _when(run.recorded_at or 0.0, exchange.started),
        "time": took,
        "request": _request(exchange.request),
        "response": _response(exchange.request, answer),
        "cache": {},
        "timings": {"send": 0, "wait": waited, "receive": max(took - waited, 0.0)},
        "_exchange": _ours(tape, exchange),
    }
    if exchange.connection:
        entry["connection"] = str(exchange.connection)
    if exchange.transport == "websocket":
        entry["_webSocketMessages"] = list(_messages(run.recorded_at or 0.0, exchange, turns))
        entry["_closed"] = _closed(turns[-1] if turns else exchange)
    elif answer is not None and answer.chunks:
        entry["_chunks"] = [[chunk.at, len(chunk.data)] for chunk in answer.chunks]
    return entry


def _end(exchange: Exchange) -> float:
    answer = exchange.response
    if answer is None:
        return exchange.started
    last = answer.chunks[-1].at if answer.chunks else answer.at
    return max(last, answer.ended or last)


def _ours(tape: Tape, exchange: Exchange) -> Table:
    answer = exchange.response
    said: Table = {
        "seq": exchange.seq,
        "connection": exchange.connection,
        "stream": exchange.stream,
        "started": exchange.started,
        "by": exchange.answered_by,
    }
    if tape.trajectory.recorded_at is not None:
        said["recorded_at"] = tape.trajectory.recorded_at
    if not tape.trajectory.timed:
        said["timed"] = False
    if exchange.error is not None:
        said["error"] = exchange.error
    if answer is not None:
        said["at"] = answer.at
        if answer.ended is not None:
            said["ended"] = answer.ended
        if answer.trailers and exchange.transport == "http":
            said["trailers"] = _fields(answer.trailers)
    return said


def _request(asked: Request) -> Table:
    said: Table = {
        "method": asked.method,
        "url": asked.url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _fields(asked.headers),
        "queryString": [],
        "headersSize": -1,
        "bodySize": len(asked.body),
    }
    if asked.body:
        kind = header(asked.headers, "content-type") or ""
        said["postData"] = {"mimeType": kind} | _body(asked.headers, asked.body)
    return said


def _response(asked: Request, answer: Response | None) -> Table:
    if answer is None:
        empty: Table = {"size": 0, "mimeType": "x-unknown"}
        return {
            "status": 0,
            "statusText": "",
            "httpVersion": "",
            "cookies": [],
            "headers": [],
            "content": empty,
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": -1,
        }
    websocket = answer.status == 101
    body = b"" if websocket else answer.body
    kind = header(answer.headers, "content-type") or "x-unknown"
    content: Table = {"size": len(body), "mimeType": kind}
    return {
        "status": answer.status,
        "statusText": answer.reason,
        "httpVersion": answer.version,
        "cookies": [],
        "headers": _fields(answer.headers),
        "content": content | (_body(answer.headers, body) if body else {}),
        "redirectURL": header(answer.headers, "location") or "",
        "headersSize": -1,
        "bodySize": len(body),
    }


def _body(headers: Headers, body: bytes) -> Table:
    """The text of a body for who looks at it, and the bytes where the text is not they."""
    inside = plain(headers, body)
    text = (body if inside is None else inside).decode("utf-8", "replace")
    encoded = header(headers, "content-encoding") is not None
    charset = "charset=" in (header(headers, "content-type") or "").lower()
    if encoded or charset or text.encode() != body:
        return {"text": text, "_raw": base64.b64encode(body).decode()}
    return {"text": text}


def _messages(zero: float, upgrade: Exchange, turns: list[Exchange]) -> Iterator[Table]:
    yield from _heard(zero, upgrade)
    for turn in turns:
        said = turn.request.method == BINARY, Chunk(at=turn.started, data=turn.request.body)
        yield _message(zero, "send", *said) | {"_seq": turn.seq}
        yield from _heard(zero, turn)


def _heard(zero: float, turn: Exchange) -> Iterator[Table]:
    answer = turn.response
    if answer is not None:
        for kind, chunk in zip(binary(answer), answer.chunks, strict=True):
            yield _message(zero, "receive", kind, chunk)


def _message(zero: float, way: str, is_binary: bool, chunk: Chunk) -> Table:
    data = chunk.data
    text = base64.b64encode(data).decode() if is_binary else data.decode("utf-8", "surrogateescape")
    opcode = 2 if is_binary else 1
    return {"type": way, "time": zero + chunk.at, "opcode": opcode, "data": text, "_at": chunk.at}


def _closed(last: Exchange) -> Table:
    answer, said = last.response, dict[str, object]()
    if last.error is not None:
        said["error"] = last.error
    if answer is None:
        return said
    if answer.ended is not None:
        said["at"] = answer.ended
    by_agent = header(answer.trailers, "closed")
    if by_agent is not None:
        code, _, why = by_agent.partition(" ")
        said |= {"code": int(code), "why": why, "by_agent": True}
    elif (found := close(answer)) is not None:
        said |= {"code": found[0], "why": found[1]}
    return said


def _fields(headers: Headers) -> list[Table]:
    return [{"name": name, "value": value} for name, value in headers]


def _when(zero: float, at: float) -> str:
    said = datetime.fromtimestamp(zero + at, UTC).isoformat(timespec="microseconds")
    return said.replace("+00:00", "Z")
