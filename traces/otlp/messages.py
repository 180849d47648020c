"""The fields of OTLP's messages by number, as in `opentelemetry/proto` 1.9.

A message is a map of field numbers; its values are those of OTLP's JSON: identifiers are
hexadecimal, 64-bit integers decimal text, other bytes base64, enums integers.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

type FieldKind = Literal[
    "text", "hex", "base64", "fixed64", "fixed32", "int", "long", "bool", "double", "message"
]
"""`int` is a varint that JSON has as a number, `long` one of 64 bits that JSON has as text."""
type Message = Mapping[int, "Field"]


class Field(Struct, frozen=True):
    """One field: its name in JSON, its type, and the fields of the message that it holds."""

    name: str
    kind: FieldKind
    message: Message = field(default_factory=dict)
    repeated: bool = False


def _many(name: str, message: Message) -> Field:
    return Field(name, "message", message, repeated=True)


_ANY_VALUE: dict[int, Field] = {}
_KEY_VALUE: Message = {1: Field("key", "text"), 2: Field("value", "message", _ANY_VALUE)}
_ANY_VALUE |= {
    1: Field("stringValue", "text"),
    2: Field("boolValue", "bool"),
    3: Field("intValue", "long"),
    4: Field("doubleValue", "double"),
    5: Field("arrayValue", "message", {1: _many("values", _ANY_VALUE)}),
    6: Field("kvlistValue", "message", {1: _many("values", _KEY_VALUE)}),
    7: Field("bytesValue", "base64"),
}
_RESOURCE: Message = {1: _many("attributes", _KEY_VALUE), 2: Field("droppedAttributesCount", "int")}
_SCOPE: Message = {
    1: Field("name", "text"),
    2: Field("version", "text"),
    3: _many("attributes", _KEY_VALUE),
    4: Field("droppedAttributesCount", "int"),
}
_EVENT: Message = {
    1: Field("timeUnixNano", "fixed64"),
    2: Field("name", "text"),
    3: _many("attributes", _KEY_VALUE),
    4: Field("droppedAttributesCount", "int"),
}
_LINK: Message = {
    1: Field("traceId", "hex"),
    2: Field("spanId", "hex"),
    3: Field("traceState", "text"),
    4: _many("attributes", _KEY_VALUE),
    5: Field("droppedAttributesCount", "int"),
    6: Field("flags", "fixed32"),
}
_STATUS: Message = {2: Field("message", "text"), 3: Field("code", "int")}
_SPAN: Message = {
    1: Field("traceId", "hex"),
    2: Field("spanId", "hex"),
    3: Field("traceState", "text"),
    4: Field("parentSpanId", "hex"),
    5: Field("name", "text"),
    6: Field("kind", "int"),
    7: Field("startTimeUnixNano", "fixed64"),
    8: Field("endTimeUnixNano", "fixed64"),
    9: _many("attributes", _KEY_VALUE),
    10: Field("droppedAttributesCount", "int"),
    11: _many("events", _EVENT),
    12: Field("droppedEventsCount", "int"),
    13: _many("links", _LINK),
    14: Field("droppedLinksCount", "int"),
    15: Field("status", "message", _STATUS),
    16: Field("flags", "fixed32"),
}
_LOG_RECORD: Message = {
    1: Field("timeUnixNano", "fixed64"),
    2: Field("severityNumber", "int"),
    3: Field("severityText", "text"),
    5: Field("body", "message", _ANY_VALUE),
    6: _many("attributes", _KEY_VALUE),
    7: Field("droppedAttributesCount", "int"),
    8: Field("flags", "fixed32"),
    9: Field("traceId", "hex"),
    10: Field("spanId", "hex"),
    11: Field("observedTimeUnixNano", "fixed64"),
    12: Field("eventName", "text"),
}


def _in_scopes(outer: str, inner: str, records: str, record: Message) -> Message:
    scopes = {
        1: Field("scope", "message", _SCOPE),
        2: _many(records, record),
        3: Field("schemaUrl", "text"),
    }
    resources = {
        1: Field("resource", "message", _RESOURCE),
        2: _many(inner, scopes),
        3: Field("schemaUrl", "text"),
    }
    return {1: _many(outer, resources)}


TRACES = _in_scopes("resourceSpans", "scopeSpans", "spans", _SPAN)
"""`TracesData`, and a request of a trace exporter, which has the same fields."""
LOGS = _in_scopes("resourceLogs", "scopeLogs", "logRecords", _LOG_RECORD)
