"""Amazon's binary event streams (application/vnd.amazon.eventstream): read, edit and write.

Wire facts (Smithy specification, "Amazon Event Stream"; botocore decodes the same): a message is
the length of all of it and of its headers (big-endian, 4 bytes each), a CRC-32 of these 8 bytes,
the headers, the payload, and a CRC-32 of all before. A header is the length of its name (1 byte),
the name, a type (1 byte) and a value; a string (type 7) and bytes (type 6) begin with their length
in 2 bytes. Bedrock's payloads are JSON. `:event-type` names an event, `:exception-type` an error
that ends the stream. InvokeModel's events are `chunk`, whose payload has the model's own event in
base64 under `bytes`.

A stream is shown as server-sent events, with the JSON of each message as data, so that spans of
texts are found as in any other stream. Edits of what is shown become edits of whole messages, whose
lengths and checksums are computed again.
"""

import struct
import zlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator, Mapping

import orjson
from msgspec import Struct

from traces.bodies import json_offsets
from traces.model import BodyEdit, Headers, apply_body_edits, find_header

CONTENT_TYPE = "application/vnd.amazon.eventstream"
MAX_MESSAGE_BYTES = 24 << 20
"""Size up to which clients accept a message."""
_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_SHORT = struct.Struct(">H")
_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Header types with a value of a fixed size, in bytes."""
_BYTES, _STRING = 6, 7
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")


class EventMessage(Struct, frozen=True, kw_only=True):
    """One message of a stream."""

    start: int
    stop: int
    raw_headers: bytes
    payload: bytes

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that are strings."""
        return dict(_iter_string_headers(self.raw_headers))

    @property
    def name(self) -> str:
        """The type of the event or exception; empty if it has none."""
        headers = self.headers
        return headers.get(":exception-type") or headers.get(":event-type") or ""


def is_aws_event_stream(headers: Headers) -> bool:
    """Whether a response with these headers is such a stream."""
    kind = (find_header(headers, "content-type") or "").partition(";")[0]
    return kind.strip().lower() == CONTENT_TYPE


def read_event_messages(stream: bytes) -> Iterator[EventMessage]:
    """Yield the complete messages, up to the first that is cut, too large or has a wrong CRC."""
    at = 0
    while message := _read_event_message(stream, at):
        yield message
        at = message.stop


def _read_event_message(stream: bytes, at: int) -> EventMessage | None:
    body = at + _PRELUDE.size
    if len(stream) < body + _CRC.size:
        return None
    size, header_size, prelude_crc = _PRELUDE.unpack_from(stream, at)
    end, headers_end = at + size - _CRC.size, body + header_size
    if zlib.crc32(stream[at : body - _CRC.size]) != prelude_crc or size > MAX_MESSAGE_BYTES:
        return None
    if headers_end > end or len(stream) < end + _CRC.size:
        return None
    if zlib.crc32(stream[at:end]) != _CRC.unpack_from(stream, end)[0]:
        return None
    return EventMessage(
        start=at,
        stop=end + _CRC.size,
        raw_headers=stream[body:headers_end],
        payload=stream[headers_end:end],
    )


def _iter_string_headers(raw: bytes) -> Iterator[tuple[str, str]]:
    """Yield the headers that are strings; stop at one that is malformed."""
    at = 0
    while at < len(raw):
        name_end = at + 1 + raw[at]
        name, kind = raw[at + 1 : name_end], raw[name_end : name_end + 1]
        at = name_end + 1
        if not kind:
            return
        if kind[0] in _FIXED_SIZES:
            at += _FIXED_SIZES[kind[0]]
            continue
        if kind[0] not in (_BYTES, _STRING) or at + _SHORT.size > len(raw):
            return
        start = at + _SHORT.size
        at = start + _SHORT.unpack_from(raw, at)[0]
        if at > len(raw):
            return
        if kind[0] == _STRING:
            yield name.decode("utf-8", "replace"), raw[start:at].decode("utf-8", "replace")


def write_event_message(raw_headers: bytes, payload: bytes) -> bytes:
    """Return a message with both of its checksums."""
    size = _PRELUDE.size + len(raw_headers) + len(payload) + _CRC.size
    lengths = struct.pack(">II", size, len(raw_headers))
    message = lengths + _CRC.pack(zlib.crc32(lengths)) + raw_headers + payload
    return message + _CRC.pack(zlib.crc32(message))


def make_event(name: str, payload: object, *, is_exception: bool = False) -> bytes:
    """Return a message with JSON as payload, as Bedrock writes it."""
    kind = "exception" if is_exception else "event"
    headers = {
        f":{kind}-type": name,
        ":content-type": "application/json",
        ":message-type": kind,
    }
    raw = b"".join(
        bytes([len(key)]) + key.encode() + bytes([_STRING]) + _SHORT.pack(len(value)) + value
        for key, text in headers.items()
        for value in [text.encode()]
    )
    return write_event_message(raw, orjson.dumps(payload))


def make_chunk_event(data: bytes) -> bytes:
    """Return a message of InvokeModelWithResponseStream that carries a model's own event."""
    return make_event("chunk", {"bytes": b64encode(data).decode()})


def find_message_ends(stream: bytes) -> list[int]:
    """Return the offset after each complete message."""
    return [message.stop for message in read_event_messages(stream)]


def show_as_sse(stream: bytes) -> bytes:
    """Return the messages as server-sent events; a model's own event without its name."""
    return b"".join(map(_show_message, read_event_messages(stream)))


def _show_message(message: EventMessage) -> bytes:
    inner = _decode_chunk(message)
    if inner is not None:
        return b"data: " + inner.translate(_LINE_BREAKS) + b"\n\n"
    name = message.name.encode().translate(_LINE_BREAKS)
    return b"event: " + name + b"\ndata: " + message.payload.translate(_LINE_BREAKS) + b"\n\n"


def _decode_chunk(message: EventMessage) -> bytes | None:
    """Return a model's own event in a message; None if it holds none."""
    span = _find_chunk_bytes(message)
    if span is None:
        return None
    try:
        return b64decode(message.payload[span[0] + 1 : span[1] - 1], validate=True)
    except Base64Error:
        return None


def _find_chunk_bytes(message: EventMessage) -> json_offsets.JsonSpan | None:
    payload = message.payload
    if message.name != "chunk":
        return None
    try:
        if not isinstance(orjson.loads(payload), dict):
            return None
    except orjson.JSONDecodeError:
        return None
    root = json_offsets.find_json_root(payload)
    span = json_offsets.find_json_members(payload, root).get(b"bytes")
    return span if span and payload[span[0] : span[0] + 1] == b'"' else None


def edit_shown_stream(stream: bytes, edits: Iterable[BodyEdit]) -> tuple[BodyEdit, ...]:
    """Return the edits of the stream that make these edits of `show_as_sse(stream)`.

    Each replaces a whole message, or removes one that is not shown any more. An edit reaches over
    no more than one message.
    """
    remaining, changed, at = sorted(edits, key=lambda edit: edit.start), list[BodyEdit](), 0
    for message in read_event_messages(stream):
        shown = _show_message(message)
        end = at + len(shown)
        own = [edit for edit in remaining if at <= edit.start < end]
        if own:
            local = tuple(
                BodyEdit(start=edit.start - at, stop=edit.stop - at, data=edit.data) for edit in own
            )
            data = _replace_shown(message, shown, apply_body_edits(shown, local))
            changed.append(BodyEdit(start=message.start, stop=message.stop, data=data))
        at = end
    return tuple(changed)


def _replace_shown(message: EventMessage, was: bytes, now: bytes) -> bytes:
    """Return the message that is shown as `now`; empty if nothing is."""
    if not now:
        return b""
    head = was.index(b"data: ") + len(b"data: ")
    data = now[head:].removesuffix(b"\n\n")
    if _decode_chunk(message) is None:
        return write_event_message(message.raw_headers, data)
    span = _find_chunk_bytes(message)
    assert span is not None
    edit = BodyEdit(start=span[0] + 1, stop=span[1] - 1, data=b64encode(data))
    return write_event_message(message.raw_headers, apply_body_edits(message.payload, (edit,)))
