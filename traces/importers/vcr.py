"""Import cassettes of vcrpy, go-vcr and Ruby's VCR, in the layouts in use, as exchanges.

1  `interactions` of request and response; `body` is a text, bytes, or a map with `string`
2  the same with `parsed_body`: the JSON value instead of the body (pydantic-ai)
3  `requests` and `responses`, two lists of one length (langchain)
4  `interactions` with kind, direction and data: the messages of one WebSocket
5  vcrpy before version 6, of httpx: `content` and `status_code` in the response
6  go-vcr: `url`, the number of the status in `code`
7  Ruby's VCR: `http_interactions`

A cassette has no times and no connections. Its bodies are rarely those of the wire: JSON is
serialized again in the compact form of the SDKs, and header fields that no longer fit the body are
corrected (see `fit_headers_to_body`). The path of a redacted URL is derived from the response if
that shows its dialect; the host is `unknown.invalid`.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import replace
from datetime import date
from itertools import count, zip_longest

from traces.importers.shared.http_traffic import (
    UNKNOWN_URL,
    UNTIMED_STEP,
    ImportedTraffic,
    ImportRemark,
    TrafficPiece,
    fit_headers_to_body,
    is_bodiless,
    read_date_header,
    to_headers,
)
from traces.importers.shared.websocket import (
    ImportedSocketMessage,
    WebSocketClose,
    split_into_turns,
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
"""Request path by a marker in the response; the first marker found decides."""


def read_vcr_traffic(document: object) -> ImportedTraffic:
    """Convert a parsed cassette to a run; ValueError if it is not a cassette."""
    pairs, messages = _split_cassette(document)
    recorded_at = next(
        (
            at
            for _, response in pairs
            if (at := read_date_header(_read_vcr_headers(response))) is not None
        ),
        None,
    )
    return ImportedTraffic(
        source=SOURCE,
        pieces=_read_vcr_pieces(pairs, messages),
        timed=False,
        recorded_at=recorded_at,
    )


def _split_cassette(document: object) -> tuple[list[tuple[object, object]], list[Table]]:
    """Return the pairs of request and response, and the messages of a WebSocket."""
    table = document if isinstance(document, dict) else {}
    requests, responses = table.get("requests"), table.get("responses")
    if isinstance(requests, list) and isinstance(responses, list):
        return list(zip_longest(requests, responses)), []
    interactions = table.get("interactions", table.get("http_interactions"))
    if not isinstance(interactions, list):
        raise ValueError("no list of interactions, nor of requests and responses")
    rows: list[Table] = [row if isinstance(row, dict) else {} for row in interactions]
    messages = [row for row in rows if row.get("kind") == "message"]
    rows = [row for row in rows if row.get("kind") != "message"]
    return [(row.get("request"), row.get("response")) for row in rows], messages


def _read_vcr_pieces(
    pairs: Sequence[tuple[object, object]], messages: Iterable[Table]
) -> Iterator[TrafficPiece]:
    seqs = count()
    for number, (request, response) in enumerate(pairs, 1):
        where = f"interaction {number}"
        if not isinstance(request, dict):
            yield ImportRemark(where=where, why="it has no request")
            continue
        seq = next(seqs)
        try:
            exchange = _read_vcr_exchange(seq, request, response)
        except ValueError as error:
            yield ImportRemark(where=where, why=str(error))
            continue
        yield exchange
        if exchange.response is None:
            yield ImportRemark(where=where, why="it has no response")
        elif why := _explain_missing_bodies(request, response):
            yield ImportRemark(where=where, why=why)
    yield from _read_vcr_websocket(messages, seqs)


def _read_vcr_exchange(seq: int, asked: Table, answered: object) -> Exchange:
    at = seq * UNTIMED_STEP
    body, as_text = _read_vcr_body(asked, "request")
    response = _read_vcr_response(answered, at, asked.get("method") == "HEAD")
    request = Request(
        method=str(asked.get("method") or "GET").upper(),
        url=_restore_vcr_url(asked.get("uri") or asked.get("url"), response),
        headers=fit_headers_to_body(_read_vcr_headers(asked), body, read=as_text),
        body=body,
    )
    return Exchange(seq=seq, request=request, response=response, started=at)


def _read_vcr_response(said: object, at: float, head: bool) -> Response | None:
    if not isinstance(said, dict):
        return None
    body, as_text = _read_vcr_body(said, "response")
    code, reason = _read_vcr_status(said)
    no_body = not body and is_bodiless(Request(method="HEAD" if head else "GET", url=""), code)
    return Response(
        status=code,
        headers=fit_headers_to_body(_read_vcr_headers(said), body, read=as_text, empty=no_body),
        chunks=(Chunk(at=at, data=body),) if body else (),
        reason=reason,
        at=at,
        ended=at,
    )


def _read_vcr_status(said: Table) -> tuple[int, str]:
    """Return the number and the reason; go-vcr has a status line in `status`."""
    status, reason = said.get("status"), None
    code = said.get("code", said.get("status_code"))
    if isinstance(status, dict):
        reason, code = status.get("message"), status.get("code")
    elif code is None:
        code = status
    else:
        reason = str(status or "").removeprefix(f"{code} ")
    if not isinstance(code, int):
        raise ValueError(f"its response has no status but {code!r}")
    return code, str(reason or "")


def _read_vcr_headers(said: object) -> Headers:
    headers = said.get("headers") if isinstance(said, dict) else None
    return to_headers(headers) if isinstance(headers, dict) else ()


def _read_vcr_body(said: Table, whose: str) -> tuple[bytes, bool]:
    """Return the body, and whether the cassette has it as text, and so without content encoding."""
    if said.get("body") is None and "parsed_body" in said:
        return _dump_parsed_body(said["parsed_body"], whose), True
    body = said.get("body", said.get("content"))
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


def _dump_parsed_body(value: object, whose: str) -> bytes:
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_to_iso_date)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the parsed_body of its {whose} is no JSON: {error}") from None
    return text.encode("utf-8", "surrogatepass")


def _to_iso_date(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"it holds a {type(value).__name__}")


def _explain_missing_bodies(asked: Table, answered: object) -> str | None:
    """Return the remark for an interaction whose bodies were not stored."""
    missing = [
        whose
        for whose, side in (("request", asked), ("response", answered))
        if isinstance(side, dict) and not {"body", "parsed_body", "content"} & side.keys()
    ]
    return f"the body of its {' and '.join(missing)} was not kept" if missing else None


def _restore_vcr_url(uri: object, answer: Response | None) -> str:
    url = str(uri or "")
    if "://" in url:
        return url
    body = answer.body if answer else b""
    return UNKNOWN_URL + next((path for sign, path in _PATHS if sign in body), "/")


def _read_vcr_websocket(messages: Iterable[Table], seqs: Iterator[int]) -> Iterator[TrafficPiece]:
    """Yield the exchanges of one WebSocket; cassettes have neither its upgrade nor its URL."""
    parsed_messages = [_read_vcr_message(number, each) for number, each in enumerate(messages, 1)]
    if not parsed_messages:
        return
    seq = next(seqs)
    at, end = seq * UNTIMED_STEP, (seq + len(parsed_messages) + 1) * UNTIMED_STEP
    upgrade = Exchange(
        seq=seq,
        request=Request(
            method="GET",
            url=UNKNOWN_URL.replace("https", "wss") + "/",
            headers=(("connection", "Upgrade"), ("upgrade", "websocket")),
        ),
        response=Response(status=101, reason="Switching Protocols", at=at),
        started=at,
        connection=1,
    )
    timed = [replace(each, at=at + n * UNTIMED_STEP) for n, each in enumerate(parsed_messages, 1)]
    yield from split_into_turns(upgrade, timed, WebSocketClose(at=end), seqs)


def _read_vcr_message(number: int, said: Table) -> ImportedSocketMessage:
    direction, data = said.get("direction"), said.get("data")
    if direction not in ("sent", "received"):
        raise ValueError(f"message {number} was neither sent nor received but {direction!r}")
    if isinstance(data, str | bytes):
        is_binary = isinstance(data, bytes)
        raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
    else:
        is_binary, raw = False, _dump_parsed_body(data, f"message {number}")
    return ImportedSocketMessage(sent=direction == "sent", data=raw, binary=is_binary)
