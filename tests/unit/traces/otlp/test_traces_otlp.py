"""OTLP's protobuf, with OpenTelemetry's own classes as the second implementation."""

import base64
import contextlib
import time
from typing import Any

import pytest
from google.protobuf import json_format  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as some
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from traces.otlp.messages import LOGS, TRACES, Message
from traces.otlp.protobuf import MAX_MESSAGES, decode_protobuf, encode_protobuf

LONG = some.integers(-(1 << 63), (1 << 63) - 1)
TIME = some.integers(1, (1 << 64) - 1).map(str)


def nonempty(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if value not in ("", 0, [], "0")}


ANY = some.recursive(
    some.one_of(
        some.text().map(lambda text: {"stringValue": text}),
        some.booleans().map(lambda value: {"boolValue": value}),
        LONG.map(lambda number: {"intValue": str(number)}),
        some.floats(allow_nan=False, allow_infinity=False).map(lambda x: {"doubleValue": x}),
        some.binary().map(lambda data: {"bytesValue": base64.b64encode(data).decode()}),
    ),
    lambda inner: some.one_of(
        some.lists(inner, min_size=1, max_size=3).map(lambda all: {"arrayValue": {"values": all}}),
        some.dictionaries(some.text(min_size=1), inner, min_size=1, max_size=3).map(
            lambda all: {
                "kvlistValue": {"values": [{"key": k, "value": v} for k, v in all.items()]}
            }
        ),
    ),
    max_leaves=6,
)
ATTRIBUTES = some.lists(
    some.builds(lambda k, v: {"key": k, "value": v}, some.text(min_size=1), ANY), max_size=3
)
SPAN = some.builds(
    lambda **fields: nonempty(fields),
    traceId=some.binary(min_size=16, max_size=16).map(bytes.hex),
    spanId=some.binary(min_size=8, max_size=8).map(bytes.hex),
    name=some.text(),
    kind=some.integers(0, 5),
    startTimeUnixNano=TIME,
    flags=some.integers(0, (1 << 32) - 1),
    attributes=ATTRIBUTES,
    events=some.lists(
        some.builds(
            lambda **fields: nonempty(fields), name=some.text(min_size=1), attributes=ATTRIBUTES
        ),
        max_size=2,
    ),
    status=some.just({"code": 2, "message": "failed"}),
)


def document_of(spans: list[dict[str, Any]]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}], "schemaUrl": "s"}]}


@given(some.lists(SPAN, min_size=1, max_size=3))
def test_it_writes_what_opentelemetry_reads_and_reads_what_it_writes(
    spans: list[dict[str, Any]],
) -> None:
    document = document_of(spans)
    theirs = TracesData.FromString(encode_protobuf(document, TRACES))
    assert decode_protobuf(theirs.SerializeToString(), TRACES) == document
    [first, *_] = theirs.resource_spans[0].scope_spans[0].spans
    assert first.trace_id.hex() == spans[0]["traceId"]
    assert first.name == spans[0].get("name", "")
    assert str(first.start_time_unix_nano) == spans[0]["startTimeUnixNano"]


def test_log_records_and_fields_of_later_versions_are_read() -> None:
    theirs = json_format.Parse(
        '{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"eventName": "gen_ai.choice",'
        ' "body": {"kvlistValue": {"values": [{"key": "index", "value": {"intValue": "0"}}]}},'
        ' "spanId": "AAAAAAAAAAE="}]}]}]}',
        ExportLogsServiceRequest(),
    )
    later = theirs.SerializeToString() + bytes([15 << 3, 1]) + bytes([14 << 3 | 2, 2]) + b"xx"
    [record] = decode_protobuf(later, LOGS)["resourceLogs"][0]["scopeLogs"][0]["logRecords"]  # type: ignore[index]
    assert record["eventName"] == "gen_ai.choice"
    assert record["spanId"] == "0000000000000001"
    assert record["body"] == {
        "kvlistValue": {"values": [{"key": "index", "value": {"intValue": "0"}}]}
    }


def nested(levels: int) -> bytes:
    """An attribute whose value is lists in lists."""
    data = b""
    for _ in range(levels):
        data = b"\x0a" + varint(len(data)) + data
        data = b"\x2a" + varint(len(data)) + data
    for tag in (b"\x12", b"\x4a", b"\x12", b"\x12", b"\x0a"):
        data = tag + varint(len(data)) + data
    return data


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


@pytest.mark.gate
@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x0a\x00" * (MAX_MESSAGES + 1), "it has more than 500,000 messages"),
        (nested(60), "it has more than 64 levels of nesting"),
        (b"\x0a\xff\xff\xff\xff\x0f", "a field ends after its message"),
        (b"\x0a" + b"\xff" * 20, "a number does not end"),
        (b"\x0b", "wire type 3"),
        (b"\x0a\x02\x12\x7f", "a field ends after its message"),
    ],
    ids=["messages", "nesting", "length", "varint", "group", "inner"],
)
def test_what_exceeds_a_bound_is_refused_by_name(data: bytes, why: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match=why):
        decode_protobuf(data, TRACES)
    assert time.process_time() - began < 10


@given(some.binary(), some.sampled_from([TRACES, LOGS]))
def test_any_bytes_are_read_or_refused(data: bytes, message: Message) -> None:
    with contextlib.suppress(ValueError):
        decode_protobuf(data, message)
