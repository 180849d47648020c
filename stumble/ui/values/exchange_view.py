"""One exchange as shown: decoded and raw, its stream, and what the model saw next."""

import json
from collections.abc import Iterator, Sequence

from msgspec import Struct

from stumble.ui.shown_text import PAGE_CHARACTERS
from stumble.ui.values.formats import format_bytes, format_seconds
from stumble.ui.values.run_rows import Row
from traces.bodies.content_encoding import decode_content_or_raw
from traces.model import Exchange, Headers, find_header

MOST_CHUNKS = 5000
"""Most chunks that are played."""


class ShownBody(Struct, frozen=True, kw_only=True):
    """A page of a body: text, and which part of how much."""

    text: str
    part: int
    parts: int
    size: str
    kind: str
    """`json`, `text`, or `bytes`."""


class ShownMessage(Struct, frozen=True, kw_only=True):
    """One side of an exchange."""

    line: str
    headers: tuple[tuple[str, str], ...]
    body: ShownBody


class ShownChunk(Struct, frozen=True, kw_only=True):
    """A chunk of a stream, `at` seconds after the request."""

    at: float
    text: str


class ContextMessage(Struct, frozen=True, kw_only=True):
    """A message in the model's context window."""

    role: str
    text: str
    size: str
    share: float
    """Of all bytes of the window, 0 to 1."""
    is_cut: bool
    is_new: bool


def show_request(exchange: Exchange, part: int = 1, *, raw: bool = False) -> ShownMessage:
    """Return the request as the agent sent it."""
    request = exchange.request
    return ShownMessage(
        line=f"{request.method} {request.url}",
        headers=request.headers,
        body=show_body(request.body, request.headers, part, raw=raw),
    )


def show_response(exchange: Exchange, part: int = 1, *, raw: bool = False) -> ShownMessage | None:
    """Return the answer; None if there was none."""
    response = exchange.response
    if response is None:
        return None
    took = (
        "" if response.ended is None else f", {format_seconds(response.ended - exchange.started)}"
    )
    error = f", broken off: {exchange.error}" if exchange.error else ""
    return ShownMessage(
        line=f"{response.version} {response.status} {response.reason}{took}{error}",
        headers=(*response.headers, *response.trailers),
        body=show_body(response.body, response.headers, part, raw=raw),
    )


def show_body(data: bytes, headers: Headers, part: int = 1, *, raw: bool = False) -> ShownBody:
    """Return one page of a body: decoded and laid out, or with `raw` its bytes on the wire."""
    text, kind = _decode_raw(data) if raw else _decode_body(data, headers)
    parts = max(1, -(-len(text) // PAGE_CHARACTERS))
    part = min(max(part, 1), parts)
    start = (part - 1) * PAGE_CHARACTERS
    return ShownBody(
        text=text[start : start + PAGE_CHARACTERS],
        part=part,
        parts=parts,
        size=format_bytes(len(data)),
        kind=kind,
    )


def list_chunks(exchange: Exchange) -> tuple[ShownChunk, ...]:
    """Return the chunks of a stream with their times; empty if it came at once."""
    response = exchange.response
    if response is None or len(response.chunks) < 2:
        return ()
    if find_header(response.headers, "content-encoding") not in (None, "identity"):
        return ()  # a chunk of a compressed stream is no text
    return tuple(
        ShownChunk(
            at=round(max(chunk.at - exchange.started, 0.0), 4),
            text=chunk.data.decode("utf-8", "replace"),
        )
        for chunk in response.chunks[:MOST_CHUNKS]
    )


def list_context(messages: Sequence[Row], lane: object, seq: int) -> tuple[ContextMessage, ...]:
    """Return the messages that the model had in view at request `seq`, in order."""
    seen = [
        row for row in messages
        if row["lane"] == lane and _whole(row["first_seq"]) <= seq <= _whole(row["last_seq"])
    ]  # fmt: skip
    total = sum(_whole(row["content_bytes"]) for row in seen) or 1
    return tuple(_to_context_message(row, total, seq) for row in seen)


def _to_context_message(row: Row, total: int, seq: int) -> ContextMessage:
    text, size = str(row["content"] or ""), _whole(row["content_bytes"])
    return ContextMessage(
        role=str(row["role"]),
        text=text,
        size=format_bytes(size),
        share=size / total,
        is_cut=len(text.encode("utf-8", "replace")) < size,
        is_new=row["first_seq"] == seq,
    )


def find_next_request(exchanges: Sequence[Row], lane: object, after: float) -> int | None:
    """Return the seq of the first request to the model in a lane that starts after a time."""
    later = [
        (x["started"], x["seq"]) for x in exchanges
        if x["kind"] == "model" and x["lane"] == lane and isinstance(x["started"], float)
        and x["started"] >= after
    ]  # fmt: skip
    return _whole(min(later)[1]) if later else None


def pretty_json(text: str) -> str:
    """Return JSON text laid out; other text unchanged."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def _decode_body(data: bytes, headers: Headers) -> tuple[str, str]:
    plain = decode_content_or_raw(headers, data)
    try:
        text = plain.decode()
    except UnicodeDecodeError:
        return "\n".join(_dump_bytes(plain[:PAGE_CHARACTERS])), "bytes"
    laid = pretty_json(text) if text[:1] in "{[" else text
    return laid, "json" if laid != text else "text"


def _decode_raw(data: bytes) -> tuple[str, str]:
    try:
        return data.decode(), "text"
    except UnicodeDecodeError:
        return "\n".join(_dump_bytes(data[:PAGE_CHARACTERS])), "bytes"


def _dump_bytes(data: bytes) -> Iterator[str]:
    for at in range(0, len(data), 16):
        line = data[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
        yield f"{at:08x}  {line.hex(' '):47}  {shown}"


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
