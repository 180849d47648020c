"""vcrpy cassettes, in the four layouts that projects write, as exchanges.

    1  `interactions` of request and response; `body` is a text, bytes, or a map with `string`
    2  the same with `parsed_body`: the JSON value instead of the body (pydantic-ai)
    3  `requests` and `responses`, two lists of one length (langchain)
    4  `interactions` with kind, direction and data: the messages of one WebSocket

A cassette knows no times and no connections. What it holds of a body is rarely what was on the
wire: JSON is written anew in the compact form of the SDKs, and header fields that are no longer
true of the body are set right (see `fitting`). An address that somebody redacted is told by the
answer where that says which dialect it is; its host is `unknown.invalid`.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import count, zip_longest

from traces.formats.sockets import Closed, Message, turns
from traces.formats.traffic import (
    NOWHERE,
    TICK,
    Piece,
    Remark,
    Traffic,
    bodiless,
    fields,
    fitting,
    said_date,
)
from traces.model import Chunk, Exchange, Headers, Request, Response

SOURCE = "vcr"
NAME = "vcrpy cassettes (YAML or JSON with interactions, or with requests and responses)"

type Table = Mapping[str, object]

_PATHS = (
    (b"chat.completion", "/v1/chat/completions"),
    (b'"response.', "/v1/responses"),
    (b'"object":"response"', "/v1/responses"),
    (b'"object": "response"', "/v1/responses"),
    (b"message_start", "/v1/messages"),
    (b'"type":"message"', "/v1/messages"),
    (b'"object":"list"', "/v1/embeddings"),
    (b'"object": "list"', "/v1/embeddings"),
)
"""What an answer says of the path that was asked for; the first that is found in it."""


def traffic(document: object) -> Traffic:
    """A parsed cassette as a run; ValueError where it is none."""
    pairs, messages = _parts(document)
    when = next((at for _, said in pairs if (at := said_date(_headers(said))) is not None), None)
    return Traffic(source=SOURCE, pieces=_pieces(pairs, messages), timed=False, recorded_at=when)


def _parts(document: object) -> tuple[list[tuple[object, object]], list[Table]]:
    """The pairs of request and response, and the messages of a WebSocket."""
    table = document if isinstance(document, dict) else {}
    asked, answered = table.get("requests"), table.get("responses")
    if isinstance(asked, list) and isinstance(answered, list):
        return list(zip_longest(asked, answered)), []
    each = table.get("interactions")
    if not isinstance(each, list):
        raise ValueError("no list of interactions, nor of requests and responses")
    rows: list[Table] = [row if isinstance(row, dict) else {} for row in each]
    spoken = [row for row in rows if row.get("kind") == "message"]
    rows = [row for row in rows if row.get("kind") != "message"]
    return [(row.get("request"), row.get("response")) for row in rows], spoken


def _pieces(pairs: Sequence[tuple[object, object]], messages: Iterable[Table]) -> Iterator[Piece]:
    seqs = count()
    for number, (asked, answered) in enumerate(pairs, 1):
        where = f"interaction {number}"
        if not isinstance(asked, dict):
            yield Remark(where=where, why="it has no request")
            continue
        seq = next(seqs)
        try:
            exchange = _exchange(seq, asked, answered)
        except ValueError as error:
            yield Remark(where=where, why=str(error))
            continue
        yield exchange
        if exchange.response is None:
            yield Remark(where=where, why="it has no response")
        elif why := _bodyless(asked, answered):
            yield Remark(where=where, why=why)
    yield from _spoken(messages, seqs)


def _exchange(seq: int, asked: Table, answered: object) -> Exchange:
    at = seq * TICK
    body, as_text = _body(asked, "request")
    response = _response(answered, at, asked.get("method") == "HEAD")
    request = Request(
        method=str(asked.get("method") or "GET"),
        url=_url(asked.get("uri"), response),
        headers=fitting(_headers(asked), body, read=as_text),
        body=body,
    )
    return Exchange(seq=seq, request=request, response=response, started=at)


def _response(said: object, at: float, head: bool) -> Response | None:
    if not isinstance(said, dict):
        return None
    body, as_text = _body(said, "response")
    status = said.get("status")
    line = status if isinstance(status, dict) else {"code": status}
    code = line.get("code")
    if not isinstance(code, int):
        raise ValueError(f"its response has no status but {code!r}")
    empty = not body and bodiless(Request(method="HEAD" if head else "GET", url=""), code)
    return Response(
        status=code,
        headers=fitting(_headers(said), body, read=as_text, empty=empty),
        chunks=(Chunk(at=at, data=body),) if body else (),
        reason=str(line.get("message") or ""),
        at=at,
        ended=at,
    )


def _headers(said: object) -> Headers:
    found = said.get("headers") if isinstance(said, dict) else None
    return fields(found) if isinstance(found, dict) else ()


def _body(said: Table, whose: str) -> tuple[bytes, bool]:
    """The body, and whether the cassette holds it as text, which no content encoding is."""
    if said.get("body") is None and "parsed_body" in said:
        return _dumped(said["parsed_body"], whose), True
    body = said.get("body")
    if isinstance(body, dict):
        if isinstance(packed := body.get("base64_string"), str | bytes):
            try:
                return base64.b64decode(packed), False
            except binascii.Error as error:
                raise ValueError(f"the body of its {whose} is no base64: {error}") from None
        body = body.get("string")
    if isinstance(body, list):
        body = b"".join(each if isinstance(each, bytes) else str(each).encode() for each in body)
    match body:
        case None:
            return b"", False
        case bytes():
            return body, False
        case str():
            return body.encode("utf-8", "surrogateescape"), True
    raise ValueError(f"the body of its {whose} is a {type(body).__name__}, not text or bytes")


def _dumped(value: object, whose: str) -> bytes:
    try:
        said = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_day)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the parsed_body of its {whose} is no JSON: {error}") from None
    return said.encode("utf-8", "surrogatepass")


def _day(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"it holds a {type(value).__name__}")


def _bodyless(asked: Table, answered: object) -> str | None:
    """What to say of an interaction whose bodies were not kept."""
    gone = [
        whose
        for whose, said in (("request", asked), ("response", answered))
        if isinstance(said, dict) and not {"body", "parsed_body"} & said.keys()
    ]
    return f"the body of its {' and '.join(gone)} was not kept" if gone else None


def _url(uri: object, answer: Response | None) -> str:
    said = str(uri or "")
    if "://" in said:
        return said
    body = answer.body if answer else b""
    return NOWHERE + next((path for sign, path in _PATHS if sign in body), "/")


def _spoken(messages: Iterable[Table], seqs: Iterator[int]) -> Iterator[Piece]:
    """The messages of one WebSocket; its upgrade and its address are in no cassette."""
    said = [_message(number, each) for number, each in enumerate(messages, 1)]
    if not said:
        return
    seq = next(seqs)
    at, end = seq * TICK, (seq + len(said) + 1) * TICK
    upgrade = Exchange(
        seq=seq,
        request=Request(
            method="GET",
            url=NOWHERE.replace("https", "wss") + "/",
            headers=(("connection", "Upgrade"), ("upgrade", "websocket")),
        ),
        response=Response(status=101, reason="Switching Protocols", at=at),
        started=at,
        connection=1,
    )
    timed = [replace(each, at=at + n * TICK) for n, each in enumerate(said, 1)]
    yield from turns(upgrade, timed, Closed(at=end), seqs)


def _message(number: int, said: Table) -> Message:
    direction, data = said.get("direction"), said.get("data")
    if direction not in ("sent", "received"):
        raise ValueError(f"message {number} was neither sent nor received but {direction!r}")
    if isinstance(data, str | bytes):
        binary = isinstance(data, bytes)
        raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
    else:
        binary, raw = False, _dumped(data, f"message {number}")
    return Message(sent=direction == "sent", data=raw, binary=binary)
