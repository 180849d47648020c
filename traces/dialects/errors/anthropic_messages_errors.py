"""Errors of Anthropic messages.

Wire facts (Anthropic's documentation, "Errors" and "Streaming messages"): an error is
`{"type": "error", "error": {"type", "message"}}`; in a stream it is an event `error`, which the
SDK raises as an `APIStatusError` with the status of the stream, 200.
"""

from collections.abc import Mapping

import orjson

from traces.bodies import json_offsets
from traces.dialects import json_access
from traces.dialects.errors.text_spans import (
    Members,
    TextSpans,
    find_event_objects,
    find_nested_members,
    find_string_member,
    is_event_stream_answer,
)
from traces.model import BodyEdit

ID_PREFIX = "msg_"
ERRORS: Mapping[int, tuple[str, str]] = {
    400: ("invalid_request_error", "Invalid request"),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use this resource."),
    404: ("not_found_error", "Not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your account's rate limit."),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "Request timed out"),
    529: ("overloaded_error", "Overloaded"),
}


def make_model_error_body(status: int, message: str | None = None) -> bytes:
    """Return the body of a response with this status."""
    kind, words = ERRORS.get(status, ERRORS[500 if status >= 500 else 400])
    error = {"type": kind, "message": message or words}
    return orjson.dumps({"type": "error", "error": error})


def make_stream_error() -> bytes:
    """Return the event that ends a stream with an error."""
    return b"event: error\ndata: " + make_model_error_body(529) + b"\n\n"


def find_text_spans(body: bytes) -> TextSpans | None:
    """Return the spans of the last call's input, or of the last text."""
    return (
        _find_message_stream_spans(body)
        if is_event_stream_answer(body)
        else _find_message_spans(body)
    )


def _find_message_spans(body: bytes) -> TextSpans | None:
    blocks = list(json_offsets.iter_json_objects(body, _read_top_members(body).get(b"content")))
    calls = [
        block[b"input"] for block in blocks if _is_block_of_kind(body, block, "tool_use", b"input")
    ]
    if calls:
        return TextSpans(pieces=(), value=calls[-1])
    texts = [block[b"text"] for block in blocks if _is_block_of_kind(body, block, "text", b"text")]
    return TextSpans(pieces=(texts[-1],)) if texts else None


def _is_block_of_kind(body: bytes, block: Members, kind: str, needs: bytes) -> bool:
    return needs in block and json_access.read_member_value(body, block, b"type") == kind


def _find_message_stream_spans(body: bytes) -> TextSpans | None:
    texts, calls = (
        dict[int, list[json_offsets.JsonSpan]](),
        dict[int, list[json_offsets.JsonSpan]](),
    )
    for _, value, members in find_event_objects(body):
        index, delta = (
            json_access.get_integer(value, "index") or 0,
            find_nested_members(body, members, b"delta"),
        )
        if json_access.to_json_object(value.get("content_block")).get("type") == "tool_use":
            calls[index] = []
        elif index in calls:
            calls[index] += find_string_member(body, delta, b"partial_json")
        elif text_spans := find_string_member(body, delta, b"text"):
            texts.setdefault(index, []).extend(text_spans)
    blocks = calls or texts
    pieces = blocks[max(blocks)] if blocks else []
    return TextSpans(pieces=tuple(pieces)) if pieces else None


def empty_answer(body: bytes) -> tuple[BodyEdit, ...]:
    """Return the edits that remove text and calls from a response."""
    removals, stop_reasons = list[BodyEdit](), list[BodyEdit]()
    if is_event_stream_answer(body):
        for place, value, members in find_event_objects(body):
            if str(value.get("type")).startswith("content_block_"):
                removals.append(BodyEdit(start=place.start, stop=place.stop, data=b""))
            stop_reasons += _edit_stop_reason(body, find_nested_members(body, members, b"delta"))
    else:
        top = _read_top_members(body)
        if list(json_offsets.iter_json_objects(body, top.get(b"content"))):
            removals.append(BodyEdit(start=top[b"content"][0], stop=top[b"content"][1], data=b"[]"))
        stop_reasons += _edit_stop_reason(body, top)
    return tuple(sorted(removals + stop_reasons, key=lambda edit: edit.start)) if removals else ()


def _edit_stop_reason(body: bytes, members: Members) -> list[BodyEdit]:
    return [
        BodyEdit(start=start, stop=stop, data=b'"end_turn"')
        for start, stop in find_string_member(body, members, b"stop_reason")
        if body[start:stop] == b'"tool_use"'
    ]


def _read_top_members(body: bytes) -> Members:
    return json_offsets.find_json_members(body, json_offsets.find_json_root(body))
