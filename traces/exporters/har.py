"""Export to HAR 1.2: HTTP traffic for any HTTP viewer, with the time of each chunk.

Data without a HAR field is in custom fields, which begin with an underscore as the specification
requires: `_chunks` ([time, bytes] of each chunk of a response), `_raw` (base64 of a body as on the
wire, if its text differs), `_exchange` (numbers, exact times, trailers, the error),
`_webSocketMessages` as Chrome writes them, and `_closed` for how such a connection ended.
`traces.importers.har` restores the same exchanges from these. stdio traffic is omitted by name, and
so are the edits of a fault, since a HAR request has one body.
"""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version

from traces.bodies.content_encoding import decode_content
from traces.bodies.websocket import BINARY_METHOD, read_binary_flags, read_websocket_close
from traces.exporters import ExportOmission
from traces.model import Chunk, Exchange, Headers, Request, Response, find_header
from traces.tape.reader import Tape

type Table = dict[str, object]


def to_har_document(tape: Tape) -> tuple[Table, tuple[ExportOmission, ...]]:
    """Convert a run to the value of a HAR file; ValueError if no exchange can be exported."""
    omissions = tuple(_find_har_omissions(tape))
    turns: dict[int, list[Exchange]] = {}
    for exchange in tape.exchanges:
        if exchange.transport == "websocket" and exchange.stream:
            turns.setdefault(exchange.connection, []).append(exchange)
    entries = [
        _to_har_entry(tape, exchange, turns.get(exchange.connection, []))
        for exchange in tape.exchanges
        if exchange.transport == "http" or _is_websocket_opening(exchange)
    ]
    if not entries:
        raise ValueError(omissions[0].why if omissions else "it has no exchanges")
    creator = {"name": "stumble", "version": version("stumble")}
    return {
        "log": {"version": "1.2", "creator": creator, "pages": [], "entries": entries}
    }, omissions


def _is_websocket_opening(exchange: Exchange) -> bool:
    return exchange.transport == "websocket" and not exchange.stream


def _find_har_omissions(tape: Tape) -> Iterator[ExportOmission]:
    for exchange in tape.exchanges:
        what = f"exchange {exchange.seq}"
        if exchange.transport == "stdio":
            yield ExportOmission(what=what, why="HAR holds no stdio")
        elif exchange.edits:
            yield ExportOmission(what=f"the edits of {what}", why="HAR has one body for a request")


def _to_har_entry(tape: Tape, exchange: Exchange, turns: list[Exchange]) -> Table:
    response, run = exchange.response, tape.trajectory
    end = _find_end_time(exchange)
    duration = max(end - exchange.started, 0.0) * 1000
    wait = max(response.at - exchange.started, 0.0) * 1000 if response else duration
    entry: Table = {
        "startedDateTime": _to_har_time(run.recorded_at or 0.0, exchange.started),
        "time": duration,
        "request": _to_har_request(exchange.request),
        "response": _to_har_response(exchange.request, response),
        "cache": {},
        "timings": {"send": 0, "wait": wait, "receive": max(duration - wait, 0.0)},
        "_exchange": _to_exchange_field(tape, exchange),
    }
    if exchange.connection:
        entry["connection"] = str(exchange.connection)
    if exchange.transport == "websocket":
        entry["_webSocketMessages"] = list(
            _to_har_websocket_messages(run.recorded_at or 0.0, exchange, turns)
        )
        entry["_closed"] = _to_closed_field(turns[-1] if turns else exchange)
    elif response is not None and response.chunks:
        entry["_chunks"] = [[chunk.at, len(chunk.data)] for chunk in response.chunks]
    return entry


def _find_end_time(exchange: Exchange) -> float:
    response = exchange.response
    if response is None:
        return exchange.started
    last = response.chunks[-1].at if response.chunks else response.at
    return max(last, response.ended or last)


def _to_exchange_field(tape: Tape, exchange: Exchange) -> Table:
    response = exchange.response
    out: Table = {
        "seq": exchange.seq,
        "connection": exchange.connection,
        "stream": exchange.stream,
        "started": exchange.started,
        "by": exchange.answered_by,
    }
    if tape.trajectory.recorded_at is not None:
        out["recorded_at"] = tape.trajectory.recorded_at
    if not tape.trajectory.timed:
        out["timed"] = False
    if exchange.error is not None:
        out["error"] = exchange.error
    if response is not None:
        out["at"] = response.at
        if response.ended is not None:
            out["ended"] = response.ended
        if response.trailers and exchange.transport == "http":
            out["trailers"] = _to_har_headers(response.trailers)
    return out


def _to_har_request(request: Request) -> Table:
    out: Table = {
        "method": request.method,
        "url": request.url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _to_har_headers(request.headers),
        "queryString": [],
        "headersSize": -1,
        "bodySize": len(request.body),
    }
    if request.body:
        kind = find_header(request.headers, "content-type") or ""
        out["postData"] = {"mimeType": kind} | _to_har_body(request.headers, request.body)
    return out


def _to_har_response(request: Request, answer: Response | None) -> Table:
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
    kind = find_header(answer.headers, "content-type") or "x-unknown"
    content: Table = {"size": len(body), "mimeType": kind}
    return {
        "status": answer.status,
        "statusText": answer.reason,
        "httpVersion": answer.version,
        "cookies": [],
        "headers": _to_har_headers(answer.headers),
        "content": content | (_to_har_body(answer.headers, body) if body else {}),
        "redirectURL": find_header(answer.headers, "location") or "",
        "headersSize": -1,
        "bodySize": len(body),
    }


def _to_har_body(headers: Headers, body: bytes) -> Table:
    """Return the decoded text of a body, and its bytes if the text differs from them."""
    decoded = decode_content(headers, body)
    text = (body if decoded is None else decoded).decode("utf-8", "replace")
    encoded = find_header(headers, "content-encoding") is not None
    charset = "charset=" in (find_header(headers, "content-type") or "").lower()
    if encoded or charset or text.encode() != body:
        return {"text": text, "_raw": base64.b64encode(body).decode()}
    return {"text": text}


def _to_har_websocket_messages(
    zero: float, upgrade: Exchange, turns: list[Exchange]
) -> Iterator[Table]:
    yield from _to_har_received_messages(zero, upgrade)
    for turn in turns:
        message = (
            turn.request.method == BINARY_METHOD,
            Chunk(at=turn.started, data=turn.request.body),
        )
        yield _to_har_message(zero, "send", *message) | {"_seq": turn.seq}
        yield from _to_har_received_messages(zero, turn)


def _to_har_received_messages(zero: float, turn: Exchange) -> Iterator[Table]:
    response = turn.response
    if response is not None:
        for kind, chunk in zip(read_binary_flags(response), response.chunks, strict=True):
            yield _to_har_message(zero, "receive", kind, chunk)


def _to_har_message(zero: float, way: str, is_binary: bool, chunk: Chunk) -> Table:
    data = chunk.data
    text = base64.b64encode(data).decode() if is_binary else data.decode("utf-8", "surrogateescape")
    opcode = 2 if is_binary else 1
    return {"type": way, "time": zero + chunk.at, "opcode": opcode, "data": text, "_at": chunk.at}


def _to_closed_field(last: Exchange) -> Table:
    response, out = last.response, dict[str, object]()
    if last.error is not None:
        out["error"] = last.error
    if response is None:
        return out
    if response.ended is not None:
        out["at"] = response.ended
    by_agent = find_header(response.trailers, "closed")
    if by_agent is not None:
        code, _, why = by_agent.partition(" ")
        out |= {"code": int(code), "why": why, "by_agent": True}
    elif (close := read_websocket_close(response)) is not None:
        out |= {"code": close[0], "why": close[1]}
    return out


def _to_har_headers(headers: Headers) -> list[Table]:
    return [{"name": name, "value": value} for name, value in headers]


def _to_har_time(zero: float, at: float) -> str:
    text = datetime.fromtimestamp(zero + at, UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")
