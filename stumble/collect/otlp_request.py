"""Requests of OTLP exporters: protobuf or JSON, plain, gzipped or deflated, within bounds.

https://opentelemetry.io/docs/specs/otlp/
"""

import zlib
from typing import Final, Literal

import orjson
from msgspec import Struct

from traces.importers.shared.json_values import parse_json
from traces.otlp.messages import Field, Message
from traces.otlp.protobuf import Table, decode_protobuf, encode_protobuf

MAX_BODY = 16 << 20
"""Maximum bytes of a request, both as sent and decompressed."""
PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
type BodyForm = Literal["application/x-protobuf", "application/json"]
_PARTIAL: Message = {1: Field("rejected", "long"), 2: Field("errorMessage", "text")}
_ANSWER: Message = {1: Field("partialSuccess", "message", _PARTIAL)}
_STATUS: Message = {1: Field("code", "int"), 2: Field("message", "text")}


class BodyTooLarge(ValueError):
    """A request exceeds the bound on its size."""

    def __init__(self) -> None:
        super().__init__(f"the request has more than {MAX_BODY >> 20} MB; send smaller batches")


class RejectedRecords(Struct, frozen=True, kw_only=True):
    """How many records of a request were not kept, and why."""

    count: int = 0
    why: str = ""


def find_body_form(content_type: str | None) -> BodyForm | None:
    """Return the form that a content type names; None if OTLP has no such form.

    A web page may send other types to any server without asking it first, these two it may not.
    """
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind == PROTOBUF:
        return PROTOBUF
    return JSON if kind == JSON else None


def read_otlp_body(body: bytes, form: BodyForm, encoding: str | None, message: Message) -> Table:
    """Return the document of a request. Raises ValueError if it cannot be read."""
    data = _decompress_body(body, (encoding or "identity").strip().lower())
    if form == PROTOBUF:
        return decode_protobuf(data, message)
    document = parse_json(data)
    if not isinstance(document, dict):
        raise ValueError("the body is no JSON object")
    return document


def _decompress_body(body: bytes, encoding: str) -> bytes:
    if len(body) > MAX_BODY:
        raise BodyTooLarge
    if encoding in ("identity", ""):
        return body
    if encoding not in ("gzip", "deflate"):
        raise ValueError(f"content-encoding {encoding[:40]!r} is not supported: gzip, deflate")
    inflate = zlib.decompressobj(wbits=31 if encoding == "gzip" else 15)
    try:
        data = inflate.decompress(body, MAX_BODY + 1)
    except zlib.error as error:
        raise ValueError(f"the body is no {encoding}: {error}") from None
    if len(data) > MAX_BODY:
        raise BodyTooLarge
    if not inflate.eof:
        raise ValueError(f"the {encoding} of the body is cut off")
    return data


def make_otlp_answer(form: BodyForm, rejected: RejectedRecords, what: str) -> bytes:
    """Return the answer to a request; `what` are its records: Spans, LogRecords, DataPoints."""
    values: Table = {}
    if rejected.count:
        counts: Table = {"rejected": str(rejected.count), "errorMessage": rejected.why}
        values = {"partialSuccess": counts}
    if form == PROTOBUF:
        return encode_protobuf(values, _ANSWER)
    if rejected.count:
        counts[f"rejected{what}"] = counts.pop("rejected")
    return orjson.dumps(values)


def make_otlp_error(form: BodyForm, code: int, why: str) -> bytes:
    """Return a `google.rpc.Status`."""
    values: Table = {"code": code, "message": why}
    return encode_protobuf(values, _STATUS) if form == PROTOBUF else orjson.dumps(values)
