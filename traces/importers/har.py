"""Import HAR 1.2 as exchanges: from browsers, HTTP tools, mitmproxy and `traces.exporters.har`.

An entry is one exchange; an entry with `_webSocketMessages` is a connection of several. Times are
those of the file: the head of a response came when its `receive` began. The custom fields of the
exporter come first: `_chunks` (time and size of each chunk of a response), `_raw` (a body as on the
wire) and `_exchange` (fields that HAR lacks); so an exported file is restored exactly. In other
files a body is decoded, and header fields that no longer fit it are corrected. The file is read
entry by entry, so it may have any size and may be truncated.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from copy import replace
from datetime import datetime
from io import BufferedIOBase
from itertools import count
from pathlib import Path
from typing import cast
from urllib.parse import urlencode

import orjson
from msgspec import Struct

from traces.importers.shared import file_reader
from traces.importers.shared.http_traffic import (
    UNKNOWN_URL,
    UNTIMED_STEP,
    ImportedTraffic,
    ImportRemark,
    TrafficPiece,
    fit_headers_to_body,
    is_bodiless,
    normalize_traffic_error,
    to_latin1_text,
)
from traces.importers.shared.json_stream import read_list_objects
from traces.importers.shared.websocket import (
    ImportedSocketMessage,
    WebSocketClose,
    split_into_turns,
)
from traces.model import AnswerSource, Chunk, Exchange, Headers, Request, Response, find_header

SOURCE = "har"
NAME = "HAR (JSON with log and entries)"
LIMIT = 32 << 20
"""Maximum bytes of one entry; a larger one is skipped with a remark."""

_HEX = re.compile("([0-9a-f]{2})*")
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)")

type Table = Mapping[str, object]


class _HarEntrySummary(Struct, frozen=True, kw_only=True):
    """Facts of an entry, collected by the first pass: when it began, and its number of turns."""

    number: int
    started: float | None = None
    run_started: float | None = None
    """Start of the run, if an exported entry has it."""
    turns: int = 0
    seq: int | None = None
    """Its seq, if the entry was exported by `stumble`."""
    trouble: str | None = None


def read_har_traffic(path: Path) -> ImportedTraffic:
    """Read a file as a run; ValueError if it is not HAR, or no entry can be read."""
    summaries, cut = _survey_har_entries(path)
    readable = [each for each in summaries if each.trouble is None]
    if not readable:
        raise ValueError(
            next((each.trouble for each in summaries if each.trouble), "it has no entry")
        )
    numbers = {each.seq for each in readable}
    if numbers != {None} and (None in numbers or len(numbers) < len(readable)):
        raise ValueError("it was put together of several runs: a number is there twice, or missing")
    start_times = [each.started for each in readable if each.started is not None]
    timed = len(start_times) == len(readable)
    zero = next(
        (each.run_started for each in readable if each.run_started is not None),
        min(start_times, default=None),
    )
    return ImportedTraffic(
        source=SOURCE,
        pieces=_read_har_pieces(path, summaries, zero if timed else None, cut),
        timed=timed,
        recorded_at=zero,
    )


def _survey_har_entries(path: Path) -> tuple[list[_HarEntrySummary], str | None]:
    """Summarize all entries in file order; return also why the file ends early, if it does."""
    summaries = list[_HarEntrySummary]()
    try:
        with file_reader.open_unpacked_file(path) as file:
            for number, each in enumerate(_read_raw_entries(file), 1):
                summaries.append(_summarize_raw_entry(number, each))
    except (EOFError, ValueError) as error:
        if not summaries:
            raise ValueError(str(error)) from None
        return summaries, str(error)
    return summaries, None


def _read_raw_entries(file: BufferedIOBase) -> Iterator[bytes | int]:
    return read_list_objects(file, "entries", 3, LIMIT)


def _summarize_raw_entry(number: int, raw: bytes | int) -> _HarEntrySummary:
    if isinstance(raw, int):
        why = f"it has {raw >> 20} MB; at most {LIMIT >> 20} are read"
        return _HarEntrySummary(number=number, trouble=why)
    try:
        entry = orjson.loads(raw)
    except ValueError as error:
        return _HarEntrySummary(number=number, trouble=f"it is no JSON: {error}")
    try:
        return _summarize_entry(number, entry)
    except file_reader.SHAPE_ERRORS as error:
        return _HarEntrySummary(number=number, trouble=f"it is no entry of HAR: {error}")


def _summarize_entry(number: int, entry: Table) -> _HarEntrySummary:
    messages = cast("list[Table]", entry.get("_webSocketMessages") or [])
    sent = sum(isinstance(each, dict) and each.get("type") == "send" for each in messages)
    exchange_field = cast("Table", entry.get("_exchange") or {})
    run_started, seq = exchange_field.get("recorded_at"), exchange_field.get("seq")
    return _HarEntrySummary(
        number=number,
        started=None
        if exchange_field.get("timed") is False
        else _parse_har_time(entry.get("startedDateTime")),
        run_started=run_started if isinstance(run_started, int | float) else None,
        turns=sent,
        seq=seq if isinstance(seq, int) else None,
    )


def _parse_har_time(said: object) -> float | None:
    try:
        return datetime.fromisoformat(said).timestamp() if isinstance(said, str) else None
    except ValueError:
        return None


def _read_har_pieces(
    path: Path, found: list[_HarEntrySummary], begin: float | None, cut: str | None
) -> Iterator[TrafficPiece]:
    """Yield the entries in file order, numbered in request order."""
    seqs, connections, free = dict[int, int](), dict[str, int](), 0
    for each in sorted(found, key=lambda each: each.started or 0.0):
        seqs[each.number] = free
        free += 0 if each.trouble else 1 + each.turns
    with file_reader.open_unpacked_file(path) as file:
        for each, raw in zip(found, _read_raw_entries(file), strict=False):
            where, seq = f"entry {each.number}", seqs[each.number]
            if each.trouble is not None or isinstance(raw, int):
                yield ImportRemark(where=where, why=each.trouble or "it is too large")
                continue
            at = seq * UNTIMED_STEP if begin is None else (each.started or begin) - begin
            try:
                yield from _read_entry_exchanges(
                    orjson.loads(raw), where, at, seq, connections, begin
                )
            except (ValueError, *file_reader.SHAPE_ERRORS) as error:
                yield ImportRemark(where=where, why=f"it is no entry of HAR: {error}")
    if cut is not None:
        yield ImportRemark(where=f"after entry {len(found)}", why=cut)


def _read_entry_exchanges(
    entry: dict[str, Table],
    where: str,
    at: float,
    seq: int,
    connections: dict[str, int],
    begin: float | None,
) -> Iterator[TrafficPiece]:
    exchange_field = entry.get("_exchange") or {}
    name = str(entry.get("connection") or "")
    connection = connections.setdefault(name, len(connections) + 1) if name else 0
    started = _to_number_or_default(exchange_field.get("started"), at)
    if not isinstance(entry.get("request"), dict):
        raise ValueError("it has no request")
    request = _read_har_request(entry["request"], bool(exchange_field))
    response, error = _read_har_response(entry, request, started)
    exchange = Exchange(
        seq=int(_to_number_or_default(exchange_field.get("seq"), seq)),
        request=request,
        response=response,
        error=error,
        started=started,
        connection=int(_to_number_or_default(exchange_field.get("connection"), connection)),
        stream=int(_to_number_or_default(exchange_field.get("stream"), 0)),
        answered_by=cast("AnswerSource", exchange_field.get("by") or "live"),
    )
    if entry.get("_webSocketMessages") is None:
        yield exchange
    else:
        yield from _read_har_websocket(exchange, entry, begin)
    if (why := _explain_missing_body(entry, request, response)) is not None:
        yield ImportRemark(where=where, why=why)


def _read_har_request(said: Table, ours: bool) -> Request:
    posted = said.get("postData")
    body, is_decoded = _read_posted_body(posted) if isinstance(posted, dict) else (b"", False)
    headers = _read_har_headers(said.get("headers"), pseudo=ours)
    if isinstance(posted, dict) and not ours:
        headers = _add_content_type(headers, posted)
    return Request(
        method=str(said.get("method") or "GET"),
        url=str(said.get("url") or UNKNOWN_URL),
        headers=fit_headers_to_body(headers, body, read=is_decoded)
        if is_decoded and not ours
        else headers,
        body=body,
    )


def _has_only_form_fields(said: Table) -> bool:
    """Whether the request body is given only as form fields."""
    return not said.get("text") and bool(said.get("params"))


def _add_content_type(headers: Headers, said: Table) -> Headers:
    """Add the type of the body to the headers: redaction recognises a form only by its type."""
    if _has_only_form_fields(said):
        rest = tuple(each for each in headers if each[0].lower() != "content-type")
        return (*rest, ("content-type", "application/x-www-form-urlencoded"))
    kind = str(said.get("mimeType") or "")
    if not kind or find_header(headers, "content-type") is not None:
        return headers
    return (*headers, ("content-type", to_latin1_text(kind)))


def _read_posted_body(said: Table) -> tuple[bytes, bool]:
    """Return the request body, and whether it is decoded."""
    if (raw := said.get("_raw")) is not None:
        return _decode_base64_body(raw), False
    if not _has_only_form_fields(said):
        text = said.get("text")
        text = text if isinstance(text, str) else ""
        return text.encode("utf-8", "surrogateescape"), True
    params = said.get("params")
    fields = [each for each in params if isinstance(each, dict)] if isinstance(params, list) else []
    pairs = [(str(each.get("name", "")), str(each.get("value", ""))) for each in fields]
    return urlencode(pairs).encode(), True


def _read_har_response(
    entry: dict[str, Table], request: Request, started: float
) -> tuple[Response | None, str | None]:
    recorded, exchange_field = entry.get("response") or {}, entry.get("_exchange") or {}
    why = exchange_field.get("error") or recorded.get("_error")
    error = None if why is None else normalize_traffic_error(str(why))
    status = _read_har_status(recorded.get("status"))
    if not isinstance(status, int) or status <= 0:
        return None, error
    began, end = _read_answer_times(entry, started)
    began = _to_number_or_default(exchange_field.get("at"), began)
    ended = (
        _to_number_or_default(exchange_field.get("ended"), end)
        if "started" not in exchange_field or "ended" in exchange_field
        else None
    )
    content = recorded.get("content")
    headers = _read_har_headers(recorded.get("headers"))
    body, is_decoded = (
        _read_har_content(content, headers) if isinstance(content, dict) else (b"", False)
    )
    no_body = is_bodiless(request, status)
    if no_body and not exchange_field:  # browsers list the cached body; a 304 has none
        body = b""
    if not exchange_field:
        headers = fit_headers_to_body(headers, body, read=is_decoded, empty=no_body)
    return Response(
        status=status,
        headers=headers,
        chunks=_split_into_chunks(entry.get("_chunks"), body, end),
        trailers=_read_har_headers(exchange_field.get("trailers")),
        reason=to_latin1_text(str(recorded.get("statusText") or "")),
        version=_normalize_http_version(str(recorded.get("httpVersion") or "")),
        at=began,
        ended=None if error else ended,
    ), error


def _read_answer_times(entry: Table, started: float) -> tuple[float, float]:
    """Return the times of the head and of the end of a response."""
    timings = entry.get("timings")
    receive = (
        _to_number_or_default(timings.get("receive"), 0.0) if isinstance(timings, dict) else 0.0
    )
    duration = max(_to_number_or_default(entry.get("time"), 0.0), 0.0)
    end = started + duration / 1000
    return end - min(max(receive, 0.0), duration) / 1000, end


def _read_har_content(said: Table, headers: Headers) -> tuple[bytes, bool]:
    """Return the response body, and whether it is decoded."""
    if (raw := said.get("_raw")) is not None:
        return _decode_base64_body(raw), False
    text = said.get("text")
    if not isinstance(text, str) or not text:
        return b"", False
    if said.get("encoding") == "base64" and (data := _decode_labelled_text(text)) is not None:
        # Browsers have decompressed it, others have not: then its header still fits.
        return data, find_header(headers, "content-encoding") is None
    charset = _CHARSET.search(find_header(headers, "content-type") or "")
    try:
        return text.encode(charset[1] if charset else "utf-8"), True
    except (LookupError, UnicodeEncodeError):
        return text.encode("utf-8", "surrogatepass"), True


def _decode_labelled_text(text: str) -> bytes | None:
    """Return a text that is labelled base64 as its bytes; None if it is something else.

    Polly writes the chunks of a body as a list of such texts; older versions write them in
    hexadecimal.
    """
    try:
        return _decode_base64_body(text)
    except ValueError:
        pass
    try:
        chunks = orjson.loads(text)
        if isinstance(chunks, list) and all(isinstance(each, str) for each in chunks):
            is_hex = all(_HEX.fullmatch(each) for each in chunks)
            return b"".join(bytes.fromhex(c) if is_hex else _decode_base64_body(c) for c in chunks)
    except ValueError:
        pass
    return None


def _read_har_status(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _decode_base64_body(said: object) -> bytes:
    try:
        return base64.b64decode(str(said), validate=True)
    except ValueError as error:
        raise ValueError(f"a body that is no base64: {error}") from None


def _split_into_chunks(said: object, body: bytes, end: float) -> tuple[Chunk, ...]:
    """Split a body into its chunks; one chunk if the file does not list them."""
    if not isinstance(said, list):
        return (Chunk(at=end, data=body),) if body else ()
    chunks, at = list[Chunk](), 0
    for when, size in said:
        chunks.append(Chunk(at=float(when), data=body[at : at + int(size)]))
        at += int(size)
    if at != len(body):
        raise ValueError(f"_chunks of {at} bytes, and a body of {len(body)}")
    return tuple(chunks)


def _explain_missing_body(
    entry: Mapping[str, Table], request: Request, answer: Response | None
) -> str | None:
    """Return the remark for an entry whose body is not in the file."""
    response = entry.get("response") or {}
    if answer is None:
        return None if response.get("_error") or entry.get("_exchange") else "it has no answer"
    if answer.chunks or is_bodiless(request, answer.status) or entry.get("_exchange"):
        return None
    content = response.get("content")
    size = _to_number_or_default(content.get("size") if isinstance(content, dict) else None, 0)
    if (
        size > 0
        or (find_header(_read_har_headers(response.get("headers")), "content-length") or "0") != "0"
    ):
        return "the body of its answer was not kept"
    return None


def _read_har_websocket(upgrade: Exchange, entry: Table, begin: float | None) -> Iterator[Exchange]:
    """Yield the exchanges of a WebSocket, and its end as far as the file records it."""
    entries = cast("list[Table]", entry["_webSocketMessages"])
    messages = [_read_har_message(each, upgrade.started, begin) for each in entries]
    close = cast("Table", entry.get("_closed") or {})
    end = max([upgrade.started, *(each.at for each in messages)])
    code, error = close.get("code"), close.get("error")
    closed = WebSocketClose(
        at=_to_number_or_default(close.get("at"), end),
        code=code if isinstance(code, int) else None,
        why=str(close.get("why") or ""),
        by_agent=bool(close.get("by_agent")),
        error=str(error) if error is not None else None,
    )
    response = upgrade.response
    head = None if response is None else replace(response, chunks=())
    connection = upgrade.connection or upgrade.seq + 1
    upgrade = replace(upgrade, response=head, connection=connection)
    seqs = [
        int(_to_number_or_default(each.get("_seq"), 0))
        for each in entries
        if each.get("type") == "send"
    ]
    numbers = iter(seqs) if close else count(upgrade.seq + 1)
    yield from split_into_turns(upgrade, messages, closed, numbers)


def _read_har_message(said: Table, at: float, begin: float | None) -> ImportedSocketMessage:
    data, is_binary = str(said.get("data") or ""), said.get("opcode") == 2
    when = said.get("time")
    if isinstance(when, int | float) and begin is not None:
        at = when - begin
    return ImportedSocketMessage(
        sent=said.get("type") == "send",
        data=_decode_base64_body(data) if is_binary else data.encode("utf-8", "surrogateescape"),
        binary=is_binary,
        at=_to_number_or_default(said.get("_at"), at),
    )


def _read_har_headers(said: object, *, pseudo: bool = False) -> Headers:
    """Return the header fields; HTTP/2 pseudo headers, which Chrome lists, only if `pseudo`."""
    if not isinstance(said, list):
        return ()
    pairs = [(each["name"], each["value"]) if isinstance(each, dict) else each for each in said]
    return tuple(
        (to_latin1_text(str(name)), to_latin1_text(str(value)))
        for name, value in pairs
        if pseudo or not str(name).startswith(":")
    )


_VERSIONS = {"h2": "HTTP/2.0", "http/2": "HTTP/2.0", "http/2.0": "HTTP/2.0", "h3": "HTTP/3"}


def _normalize_http_version(text: str) -> str:
    return _VERSIONS.get(text.lower(), text.upper() or "HTTP/1.1")


def _to_number_or_default(said: object, other: float) -> float:
    return said if isinstance(said, int | float) else other
