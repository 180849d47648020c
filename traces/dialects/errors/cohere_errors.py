"""Errors of Cohere's chat.

Wire facts (Cohere API reference, "Errors"): an error is an object with `message`; a stream that
fails ends with `message-end`, whose `finish_reason` is ERROR and which has a text `error`.
"""

from collections.abc import Iterator, Mapping

import orjson

from traces.bodies import json_offsets
from traces.dialects.errors.text_spans import (
    Members,
    TextSpans,
    find_event_objects,
    find_nested_members,
    find_string_member,
    is_event_stream_answer,
)
from traces.model import BodyEdit

ID_PREFIX = "cohere-"
ERRORS: Mapping[int, str] = {
    400: "invalid request",
    401: "invalid api token",
    403: "access to this model is forbidden",
    404: "model not found",
    422: "unprocessable entity",
    429: "Please wait and try again later",
    498: "invalid token",
    500: "internal server error, this has been reported to our developers",
    503: "service unavailable",
}
_CONTENT_EVENTS = frozenset(
    (
        "content-start",
        "content-delta",
        "content-end",
        "tool-plan-delta",
        "tool-call-start",
        "tool-call-delta",
        "tool-call-end",
    )
)


def make_model_error_body(status: int, message: str | None = None) -> bytes:
    """Return the body of a response with this status."""
    words = ERRORS.get(status, ERRORS[500 if status >= 500 else 400])
    return orjson.dumps({"message": message or words})


def make_stream_error() -> bytes:
    """Return the event that ends a stream with an error."""
    delta = {"finish_reason": "ERROR", "error": ERRORS[500]}
    value = {"type": "message-end", "delta": delta}
    return b"event: message-end\ndata: " + orjson.dumps(value) + b"\n\n"


def find_text_spans(body: bytes) -> TextSpans | None:
    """Return the spans of the last call's arguments, or of the text."""
    calls = dict[int, list[json_offsets.JsonSpan]]()
    texts, plan = list[json_offsets.JsonSpan](), list[json_offsets.JsonSpan]()
    for index, message in _find_messages(body):
        plan += find_string_member(body, message, b"tool_plan")
        for content in _iter_objects(body, message.get(b"content")):
            texts += find_string_member(body, content, b"text")
        for place, call in enumerate(_iter_objects(body, message.get(b"tool_calls"))):
            function = find_nested_members(body, call, b"function")
            pieces = calls.setdefault(place if index is None else index, [])
            pieces += find_string_member(body, function, b"arguments")
    pieces = calls[max(calls)] if calls else texts or plan
    return TextSpans(pieces=tuple(pieces)) if pieces else None


def _find_messages(body: bytes) -> Iterator[tuple[int | None, Members]]:
    """Yield the message of the response, or that of each event with the event's index."""
    if is_event_stream_answer(body):
        for _, value, members in find_event_objects(body):
            index = value.get("index")
            message = find_nested_members(body, members, b"delta", b"message")
            yield index if isinstance(index, int) else 0, message
    else:
        top = json_offsets.find_json_members(body, json_offsets.find_json_root(body))
        yield None, find_nested_members(body, top, b"message")


def _iter_objects(body: bytes, span: json_offsets.JsonSpan | None) -> Iterator[Members]:
    """Yield the members of an object, or of each object of a list."""
    if span is not None and body[span[0] : span[0] + 1] == b"{":
        yield json_offsets.find_json_members(body, span[0])
    else:
        yield from json_offsets.iter_json_objects(body, span)


def empty_answer(body: bytes) -> tuple[BodyEdit, ...]:
    """Return the edits that remove text and calls from a response."""
    edits = list(_empty_stream(body) if is_event_stream_answer(body) else _empty_body(body))
    is_empty = all(edit.data == b'"COMPLETE"' for edit in edits)
    return () if is_empty else tuple(sorted(edits, key=lambda edit: edit.start))


def _empty_stream(body: bytes) -> Iterator[BodyEdit]:
    for place, value, members in find_event_objects(body):
        if value.get("type") in _CONTENT_EVENTS:
            yield BodyEdit(start=place.start, stop=place.stop, data=b"")
        else:
            yield from _edit_finish(body, find_nested_members(body, members, b"delta"))


def _empty_body(body: bytes) -> Iterator[BodyEdit]:
    top = json_offsets.find_json_members(body, json_offsets.find_json_root(body))
    message = find_nested_members(body, top, b"message")
    for name, empty in ((b"content", b"[]"), (b"tool_calls", b"[]"), (b"tool_plan", b'""')):
        span = message.get(name)
        if span is not None and body[slice(*span)] not in (empty, b"null"):
            yield BodyEdit(start=span[0], stop=span[1], data=empty)
    yield from _edit_finish(body, top)


def _edit_finish(body: bytes, members: Members) -> Iterator[BodyEdit]:
    for start, stop in find_string_member(body, members, b"finish_reason"):
        if body[start:stop] == b'"TOOL_CALL"':
            yield BodyEdit(start=start, stop=stop, data=b'"COMPLETE"')
