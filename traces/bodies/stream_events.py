"""Streams of events, in the formats that model providers use: where each event ends."""

import re
from collections.abc import Callable, Mapping

from traces.bodies import aws_event_stream, sse
from traces.model import Headers, find_header

_LINE = re.compile(rb"[^\n]*\n")


def _find_line_ends(stream: bytes) -> list[int]:
    return [line.end() for line in _LINE.finditer(stream)]


_EVENT_ENDS: Mapping[str, Callable[[bytes], list[int]]] = {
    "text/event-stream": sse.find_sse_event_ends,
    "application/x-ndjson": _find_line_ends,
    "application/jsonl": _find_line_ends,
    aws_event_stream.CONTENT_TYPE: aws_event_stream.find_message_ends,
}


def _read_content_type(headers: Headers) -> str:
    return (find_header(headers, "content-type") or "").partition(";")[0].strip().lower()


def is_event_stream(headers: Headers) -> bool:
    """Whether a response with these headers is a stream of events in a known format."""
    return _read_content_type(headers) in _EVENT_ENDS


def find_event_ends(headers: Headers, stream: bytes) -> list[int]:
    """Return the offset after each complete event of an unencoded stream; empty if unknown."""
    find_ends = _EVENT_ENDS.get(_read_content_type(headers))
    return [] if find_ends is None else find_ends(stream)
