"""HAR 1.2 as exchanges: of browsers, HTTP tools and mitmproxy, and what we write ourselves.

An entry is an exchange, one with `_webSocketMessages` a connection of them. Times are those of
the file: an answer's head came when its `receive` began. What only we write is read first:
`_chunks` (when each piece of an answer came, and its bytes), `_raw` (a body as it was on the wire)
and `_exchange` (what HAR has no field for); so a file of ours comes back as it was. In others a
body stands decoded, and header fields that are no longer true of it are set right. The file is
read entry by entry, so it may have any size and may have been cut off.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from io import BufferedIOBase
from itertools import count
from pathlib import Path
from typing import cast
from urllib.parse import urlencode

import orjson

from traces.formats import files
from traces.formats.elements import elements
from traces.formats.sockets import Closed, Message, turns
from traces.formats.traffic import (
    NOWHERE,
    TICK,
    Piece,
    Remark,
    Traffic,
    bodiless,
    cause,
    fitting,
    latin,
)
from traces.model import Chunk, Exchange, Headers, Request, Response, Source, header

SOURCE = "har"
NAME = "HAR (JSON with log and entries)"
LIMIT = 32 << 20
"""Bytes of one entry; what is larger is left out by name."""

_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)")

type Table = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """What of an entry is known before any is read: when it began, and how much was said in it."""

    number: int
    started: float | None = None
    zero: float | None = None
    """When the run began, where the entry is of ours and says so."""
    turns: int = 0
    own: int | None = None
    """Its number, where the entry is of ours."""
    trouble: str | None = None


def traffic(path: Path) -> Traffic:
    """A file as a run; ValueError where it is no HAR, or nothing of it can be read."""
    found, cut = _survey(path)
    whole = [each for each in found if each.trouble is None]
    if not whole:
        raise ValueError(next((each.trouble for each in found if each.trouble), "it has no entry"))
    numbers = {each.own for each in whole}
    if numbers != {None} and (None in numbers or len(numbers) < len(whole)):
        raise ValueError("it was put together of several runs: a number is there twice, or missing")
    known = [each.started for each in whole if each.started is not None]
    timed = len(known) == len(whole)
    zero = next((each.zero for each in whole if each.zero is not None), min(known, default=None))
    return Traffic(
        source=SOURCE,
        pieces=_pieces(path, found, zero if timed else None, cut),
        timed=timed,
        recorded_at=zero,
    )


def _survey(path: Path) -> tuple[list[_Entry], str | None]:
    """All entries in the order in which they stand, and why the file ends too early, if so."""
    found = list[_Entry]()
    try:
        with files.opened(path) as file:
            for number, each in enumerate(_elements(file), 1):
                found.append(_entry(number, each))
    except (EOFError, ValueError) as error:
        if not found:
            raise ValueError(str(error)) from None
        return found, str(error)
    return found, None


def _elements(file: BufferedIOBase) -> Iterator[bytes | int]:
    return elements(file, "entries", 3, LIMIT)


def _entry(number: int, raw: bytes | int) -> _Entry:
    if isinstance(raw, int):
        why = f"it has {raw >> 20} MB; at most {LIMIT >> 20} are read"
        return _Entry(number=number, trouble=why)
    try:
        entry = orjson.loads(raw)
    except ValueError as error:
        return _Entry(number=number, trouble=f"it is no JSON: {error}")
    try:
        return _told(number, entry)
    except files.MISSHAPEN as error:
        return _Entry(number=number, trouble=f"it is no entry of HAR: {error}")


def _told(number: int, entry: Table) -> _Entry:
    said = cast("list[Table]", entry.get("_webSocketMessages") or [])
    sent = sum(isinstance(each, dict) and each.get("type") == "send" for each in said)
    ours = cast("Table", entry.get("_exchange") or {})
    zero, own = ours.get("recorded_at"), ours.get("seq")
    return _Entry(
        number=number,
        started=None if ours.get("timed") is False else _when(entry.get("startedDateTime")),
        zero=zero if isinstance(zero, int | float) else None,
        turns=sent,
        own=own if isinstance(own, int) else None,
    )


def _when(said: object) -> float | None:
    try:
        return datetime.fromisoformat(said).timestamp() if isinstance(said, str) else None
    except ValueError:
        return None


def _pieces(
    path: Path, found: list[_Entry], begin: float | None, cut: str | None
) -> Iterator[Piece]:
    """The entries as they stand, numbered in the order in which they were asked."""
    seqs, connections, free = dict[int, int](), dict[str, int](), 0
    for each in sorted(found, key=lambda each: each.started or 0.0):
        seqs[each.number] = free
        free += 0 if each.trouble else 1 + each.turns
    with files.opened(path) as file:
        for each, raw in zip(found, _elements(file), strict=False):
            where, seq = f"entry {each.number}", seqs[each.number]
            if each.trouble is not None or isinstance(raw, int):
                yield Remark(where=where, why=each.trouble or "it is too large")
                continue
            at = seq * TICK if begin is None else (each.started or begin) - begin
            try:
                yield from _exchanges(orjson.loads(raw), where, at, seq, connections, begin)
            except (ValueError, *files.MISSHAPEN) as error:
                yield Remark(where=where, why=f"it is no entry of HAR: {error}")
    if cut is not None:
        yield Remark(where=f"after entry {len(found)}", why=cut)


def _exchanges(
    entry: dict[str, Table],
    where: str,
    at: float,
    seq: int,
    connections: dict[str, int],
    begin: float | None,
) -> Iterator[Piece]:
    ours = entry.get("_exchange") or {}
    name = str(entry.get("connection") or "")
    connection = connections.setdefault(name, len(connections) + 1) if name else 0
    started = _number(ours.get("started"), at)
    if not isinstance(entry.get("request"), dict):
        raise ValueError("it has no request")
    request = _request(entry["request"], bool(ours))
    response, error = _answer(entry, request, started)
    exchange = Exchange(
        seq=int(_number(ours.get("seq"), seq)),
        request=request,
        response=response,
        error=error,
        started=started,
        connection=int(_number(ours.get("connection"), connection)),
        stream=int(_number(ours.get("stream"), 0)),
        answered_by=cast("Source", ours.get("by") or "live"),
    )
    if entry.get("_webSocketMessages") is None:
        yield exchange
    else:
        yield from _spoken(exchange, entry, begin)
    if (why := _unkept(entry, request, response)) is not None:
        yield Remark(where=where, why=why)


def _request(said: Table, ours: bool) -> Request:
    posted = said.get("postData")
    body, read = _posted(posted) if isinstance(posted, dict) else (b"", False)
    headers = _fields(said.get("headers"), pseudo=ours)
    if isinstance(posted, dict) and not ours:
        headers = _typed(headers, posted)
    return Request(
        method=str(said.get("method") or "GET"),
        url=str(said.get("url") or NOWHERE),
        headers=fitting(headers, body, read=read) if read and not ours else headers,
        body=body,
    )


def _is_form(said: Table) -> bool:
    """Whether what was sent stands only as the fields of a form."""
    return not said.get("text") and bool(said.get("params"))


def _typed(headers: Headers, said: Table) -> Headers:
    """The headers with the type of the body: a form is looked through for secrets only as one."""
    if _is_form(said):
        rest = tuple(each for each in headers if each[0].lower() != "content-type")
        return (*rest, ("content-type", "application/x-www-form-urlencoded"))
    kind = str(said.get("mimeType") or "")
    if not kind or header(headers, "content-type") is not None:
        return headers
    return (*headers, ("content-type", latin(kind)))


def _posted(said: Table) -> tuple[bytes, bool]:
    """What was sent, and whether it stands decoded."""
    if (raw := said.get("_raw")) is not None:
        return _unpacked(raw), False
    if not _is_form(said):
        text = said.get("text")
        text = text if isinstance(text, str) else ""
        return text.encode("utf-8", "surrogateescape"), True
    params = said.get("params")
    named = [each for each in params if isinstance(each, dict)] if isinstance(params, list) else []
    pairs = [(str(each.get("name", "")), str(each.get("value", ""))) for each in named]
    return urlencode(pairs).encode(), True


def _answer(
    entry: dict[str, Table], request: Request, started: float
) -> tuple[Response | None, str | None]:
    said, ours = entry.get("response") or {}, entry.get("_exchange") or {}
    why = ours.get("error") or said.get("_error")
    error = None if why is None else cause(str(why))
    status = said.get("status")
    if not isinstance(status, int) or status <= 0:
        return None, error
    head, end = _times(entry, started)
    head = _number(ours.get("at"), head)
    ended = _number(ours.get("ended"), end) if "started" not in ours or "ended" in ours else None
    content = said.get("content")
    headers = _fields(said.get("headers"))
    body, read = _content(content, headers) if isinstance(content, dict) else (b"", False)
    empty = bodiless(request, status)
    if read and empty and not ours:  # browsers show what their cache has; a 304 has no body
        body = b""
    if not ours:
        headers = fitting(headers, body, read=read, empty=empty)
    return Response(
        status=status,
        headers=headers,
        chunks=_chunks(entry.get("_chunks"), body, end),
        trailers=_fields(ours.get("trailers")),
        reason=latin(str(said.get("statusText") or "")),
        version=_version(str(said.get("httpVersion") or "")),
        at=head,
        ended=None if error else ended,
    ), error


def _times(entry: Table, started: float) -> tuple[float, float]:
    """When the head of an answer came, and its end."""
    timings = entry.get("timings")
    receive = _number(timings.get("receive"), 0.0) if isinstance(timings, dict) else 0.0
    took = max(_number(entry.get("time"), 0.0), 0.0)
    end = started + took / 1000
    return end - min(max(receive, 0.0), took) / 1000, end


def _content(said: Table, headers: Headers) -> tuple[bytes, bool]:
    """The body of an answer, and whether it stands decoded."""
    if (raw := said.get("_raw")) is not None:
        return _unpacked(raw), False
    text = said.get("text")
    if not isinstance(text, str) or not text:
        return b"", False
    if said.get("encoding") == "base64":
        return _unpacked(text), True
    charset = _CHARSET.search(header(headers, "content-type") or "")
    try:
        return text.encode(charset[1] if charset else "utf-8"), True
    except (LookupError, UnicodeEncodeError):
        return text.encode("utf-8", "surrogatepass"), True


def _unpacked(said: object) -> bytes:
    try:
        return base64.b64decode(str(said), validate=True)
    except binascii.Error as error:
        raise ValueError(f"a body that is no base64: {error}") from None


def _chunks(said: object, body: bytes, end: float) -> tuple[Chunk, ...]:
    """The body in the pieces in which it came; in one where nothing says that."""
    if not isinstance(said, list):
        return (Chunk(at=end, data=body),) if body else ()
    out, at = list[Chunk](), 0
    for when, size in said:
        out.append(Chunk(at=float(when), data=body[at : at + int(size)]))
        at += int(size)
    if at != len(body):
        raise ValueError(f"_chunks of {at} bytes, and a body of {len(body)}")
    return tuple(out)


def _unkept(entry: Mapping[str, Table], request: Request, answer: Response | None) -> str | None:
    """What to say of an entry whose body is not in the file."""
    said = entry.get("response") or {}
    if answer is None:
        return None if said.get("_error") or entry.get("_exchange") else "it has no answer"
    if answer.chunks or bodiless(request, answer.status) or entry.get("_exchange"):
        return None
    content = said.get("content")
    size = _number(content.get("size") if isinstance(content, dict) else None, 0)
    if size > 0 or (header(_fields(said.get("headers")), "content-length") or "0") != "0":
        return "the body of its answer was not kept"
    return None


def _spoken(upgrade: Exchange, entry: Table, begin: float | None) -> Iterator[Exchange]:
    """The messages of a WebSocket, and how it ended as far as the file says."""
    said = cast("list[Table]", entry["_webSocketMessages"])
    messages = [_message(each, upgrade.started, begin) for each in said]
    ours = cast("Table", entry.get("_closed") or {})
    end = max([upgrade.started, *(each.at for each in messages)])
    code, error = ours.get("code"), ours.get("error")
    closed = Closed(
        at=_number(ours.get("at"), end),
        code=code if isinstance(code, int) else None,
        why=str(ours.get("why") or ""),
        by_agent=bool(ours.get("by_agent")),
        error=str(error) if error is not None else None,
    )
    answer = upgrade.response
    head = None if answer is None else replace(answer, chunks=())
    connection = upgrade.connection or upgrade.seq + 1
    upgrade = replace(upgrade, response=head, connection=connection)
    seqs = [int(_number(each.get("_seq"), 0)) for each in said if each.get("type") == "send"]
    numbers = iter(seqs) if ours else count(upgrade.seq + 1)
    yield from turns(upgrade, messages, closed, numbers)


def _message(said: Table, at: float, begin: float | None) -> Message:
    data, binary = str(said.get("data") or ""), said.get("opcode") == 2
    when = said.get("time")
    if isinstance(when, int | float) and begin is not None:
        at = when - begin
    return Message(
        sent=said.get("type") == "send",
        data=_unpacked(data) if binary else data.encode("utf-8", "surrogateescape"),
        binary=binary,
        at=_number(said.get("_at"), at),
    )


def _fields(said: object, *, pseudo: bool = False) -> Headers:
    """Header fields; the pseudo ones of HTTP/2 that Chrome lists are none, but as we wrote them."""
    if not isinstance(said, list):
        return ()
    pairs = [(each["name"], each["value"]) if isinstance(each, dict) else each for each in said]
    return tuple(
        (latin(str(name)), latin(str(value)))
        for name, value in pairs
        if pseudo or not str(name).startswith(":")
    )


_VERSIONS = {"h2": "HTTP/2.0", "http/2": "HTTP/2.0", "http/2.0": "HTTP/2.0", "h3": "HTTP/3"}


def _version(said: str) -> str:
    return _VERSIONS.get(said.lower(), said.upper() or "HTTP/1.1")


def _number(said: object, other: float) -> float:
    return said if isinstance(said, int | float) else other
