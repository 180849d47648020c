"""Errors of Ollama's own API, and the spans of text in its answers.

Wire facts (Ollama's API reference, "Errors"; ollama 0.6 for Python reads the same): an error is an
object with `error`, a text; in a stream it is a line of its own.
"""

from collections.abc import Iterator, Mapping

import orjson

from traces.bodies import json_offsets
from traces.dialects.errors.text_spans import (
    Members,
    TextSpans,
    find_nested_members,
    find_string_member,
)
from traces.model import BodyEdit

ID_PREFIX = "ollama-"
ERRORS: Mapping[int, str] = {
    400: "invalid request",
    401: "unauthorized",
    403: "forbidden",
    404: "model not found, try pulling it first",
    429: "too many requests",
    500: "llama runner process has terminated",
    502: "upstream error",
    503: "server busy, please try again. maximum pending requests exceeded",
}


def make_model_error_body(status: int, message: str | None = None) -> bytes:
    """Return the body of a response with this status."""
    words = ERRORS.get(status, ERRORS[500 if status >= 500 else 400])
    return orjson.dumps({"error": message or words})


def make_stream_error() -> bytes:
    """Return the line that ends a stream with an error."""
    return make_model_error_body(500) + b"\n"


def find_text_spans(body: bytes) -> TextSpans | None:
    """Return the span of the last call's arguments, or the spans of the text."""
    calls, texts = list[json_offsets.JsonSpan](), list[json_offsets.JsonSpan]()
    for line in _find_lines(body):
        message = find_nested_members(body, line, b"message")
        texts += find_string_member(body, message, b"content")
        texts += find_string_member(body, line, b"response")
        for call in json_offsets.iter_json_objects(body, message.get(b"tool_calls")):
            function = find_nested_members(body, call, b"function")
            span = function.get(b"arguments")
            if span is not None and body[span[0] : span[0] + 1] == b"{":
                calls.append(span)
    if calls:
        return TextSpans(pieces=(), value=calls[-1])
    return TextSpans(pieces=tuple(texts)) if texts else None


def empty_answer(body: bytes) -> tuple[BodyEdit, ...]:
    """Return the edits that remove text and calls from a response."""
    edits = list[BodyEdit]()
    for line in _find_lines(body):
        message = find_nested_members(body, line, b"message")
        texts = (
            *find_string_member(body, message, b"content"),
            *find_string_member(body, line, b"response"),
        )
        edits += [
            BodyEdit(start=start, stop=stop, data=b'""')
            for start, stop in texts
            if stop - start > len(b'""')
        ]
        calls = message.get(b"tool_calls")
        if calls is not None and list(json_offsets.iter_json_objects(body, calls)):
            edits.append(BodyEdit(start=calls[0], stop=calls[1], data=b"[]"))
    return tuple(sorted(edits, key=lambda edit: edit.start))


def _find_lines(body: bytes) -> Iterator[Members]:
    """Yield the members of each complete line."""
    start = 0
    for line in body.splitlines(keepends=True):
        text = line.strip()
        if text[:1] == b"{":
            if text[-1:] != b"}":
                raise ValueError(f"the line at byte {start} is cut")
            yield json_offsets.find_json_members(body, start + line.index(b"{"))
        start += len(line)
