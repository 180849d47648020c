"""Errors of OpenAI responses.

Wire facts (openai 3 for Python, `ResponseErrorEvent`): an error over HTTP is as in chat
completions; in a stream it is an event `error` with `code`, `message` and `param`. The text of an
item comes in deltas, then in full in its final events, and once more in the complete response.
"""

import orjson

from traces.bodies import json_offsets
from traces.dialects import json_access
from traces.dialects.errors import openai_chat_errors
from traces.dialects.errors.text_spans import (
    Members,
    TextSpans,
    find_event_objects,
    find_nested_members,
    find_string_member,
    is_event_stream_answer,
)
from traces.model import BodyEdit

ID_PREFIX = "resp_"
_ARGUMENTS = (b"arguments", b"input")
_KEPT = ("created", "queued", "in_progress", "completed", "incomplete", "failed")
"""Events that hold only the response object."""


def make_model_error_body(status: int, message: str | None = None) -> bytes:
    """Return the body of a response with this status."""
    return openai_chat_errors.make_model_error_body(status, message)


def make_stream_error() -> bytes:
    """Return the event that ends a stream with an error."""
    message = "The server had an error while processing your request."
    error = {"type": "error", "code": "server_error", "message": message, "param": None}
    return b"event: error\ndata: " + orjson.dumps(error) + b"\n\n"


def find_text_spans(body: bytes) -> TextSpans | None:
    """Return the spans of the last call's arguments, or of the last text."""
    return (
        _find_response_stream_spans(body)
        if is_event_stream_answer(body)
        else _find_response_spans(body)
    )


def _find_response_spans(body: bytes) -> TextSpans | None:
    items = _find_output_items(
        body, json_offsets.find_json_members(body, json_offsets.find_json_root(body))
    )
    spans = [
        find_string_member(body, item, name)
        for item in items
        if (name := _find_argument_name(item))
    ]
    spans = spans or [texts for item in items if (texts := _find_part_texts(body, item))]
    return TextSpans(pieces=spans[-1][-1:]) if spans and spans[-1] else None


def _find_response_stream_spans(body: bytes) -> TextSpans | None:
    pieces, wholes = (
        dict[int, list[json_offsets.JsonSpan]](),
        dict[int, list[json_offsets.JsonSpan]](),
    )
    calls = set[int]()
    for _, value, members in find_event_objects(body):
        index, kind = json_access.get_integer(value, "output_index") or 0, str(value.get("type"))
        item = find_nested_members(body, members, b"item")
        if _find_argument_name(item):
            calls.add(index)
        if kind.endswith((".output_text.delta", "_arguments.delta", "_input.delta")):
            pieces.setdefault(index, []).extend(find_string_member(body, members, b"delta"))
        elif kind.endswith(".done"):
            holder = find_nested_members(body, members, b"part") or item or members
            wholes.setdefault(index, []).extend(_find_whole_texts(body, holder))
        for number, item in enumerate(
            _find_output_items(body, find_nested_members(body, members, b"response"))
        ):
            wholes.setdefault(number, []).extend(_find_whole_texts(body, item))
    last_index = max(calls or pieces, default=None)
    if last_index is None or not pieces.get(last_index):
        return None
    return TextSpans(pieces=tuple(pieces[last_index]), wholes=tuple(wholes.get(last_index, ())))


def _find_output_items(body: bytes, response: Members) -> list[Members]:
    return list(json_offsets.iter_json_objects(body, response.get(b"output")))


def _find_argument_name(item: Members) -> bytes | None:
    """Return the member with a call's arguments; None if the item is not a call."""
    return next((name for name in _ARGUMENTS if name in item and b"call_id" in item), None)


def _find_part_texts(body: bytes, item: Members) -> tuple[json_offsets.JsonSpan, ...]:
    parts = json_offsets.iter_json_objects(body, item.get(b"content"))
    return tuple(span for part in parts for span in find_string_member(body, part, b"text"))


def _find_whole_texts(body: bytes, of: Members) -> tuple[json_offsets.JsonSpan, ...]:
    """Return the spans of the full text, or full arguments, in an item, part or event."""
    names = (b"text", *_ARGUMENTS)
    return tuple(
        at for name in names for at in find_string_member(body, of, name)
    ) or _find_part_texts(body, of)


def empty_answer(body: bytes) -> tuple[BodyEdit, ...]:
    """Return the edits that remove text and calls from a response."""
    if not is_event_stream_answer(body):
        return _empty_output(
            body, json_offsets.find_json_members(body, json_offsets.find_json_root(body))
        )
    edits = list[BodyEdit]()
    for place, value, members in find_event_objects(body):
        kind = str(value.get("type")).removeprefix("response.")
        if kind in _KEPT:
            edits += _empty_output(body, find_nested_members(body, members, b"response"))
        elif kind != "error":
            edits.append(BodyEdit(start=place.start, stop=place.stop, data=b""))
    return tuple(edits)


def _empty_output(body: bytes, response: Members) -> tuple[BodyEdit, ...]:
    if not _find_output_items(body, response):
        return ()
    start, stop = response[b"output"]
    return (BodyEdit(start=start, stop=stop, data=b"[]"),)
