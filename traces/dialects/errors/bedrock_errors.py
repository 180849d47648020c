"""Errors of AWS Bedrock, and the spans of text in Converse's answers.

Wire facts (Bedrock API reference, "Converse"; botocore's parser of REST-JSON): an error is an
object with `message`, and `__type` if no header names it; in a stream it is a message whose headers
name an exception. Spans are those in a stream as `show_as_sse` shows it.
"""

from collections.abc import Iterator, Mapping

import orjson

from traces.bodies import json_offsets
from traces.bodies.aws_event_stream import make_event
from traces.dialects.errors.text_spans import (
    Members,
    TextSpans,
    find_event_objects,
    find_nested_members,
    find_string_member,
    is_event_stream_answer,
)
from traces.model import BodyEdit

ID_PREFIX = ""
ERRORS: Mapping[int, tuple[str, str]] = {
    400: ("ValidationException", "The provided request is not valid."),
    401: ("UnrecognizedClientException", "The security token included in the request is invalid."),
    403: (
        "AccessDeniedException",
        "You don't have access to the specified model.",
    ),
    404: ("ResourceNotFoundException", "Could not resolve the foundation model."),
    408: ("ModelTimeoutException", "The model timed out."),
    424: ("ModelErrorException", "The model had an error while processing your request."),
    429: ("ThrottlingException", "Too many requests, please wait before trying again."),
    500: ("InternalServerException", "The system encountered an unexpected error."),
    503: ("ServiceUnavailableException", "Bedrock is unable to process your request."),
}


def make_model_error_body(status: int, message: str | None = None) -> bytes:
    """Return the body of a response with this status."""
    name, words = ERRORS.get(status, ERRORS[500 if status >= 500 else 400])
    return orjson.dumps({"__type": name, "message": message or words})


def make_stream_error() -> bytes:
    """Return the message that ends a stream with an error."""
    _, words = ERRORS[424]
    return make_event("modelStreamErrorException", {"message": words}, is_exception=True)


def find_text_spans(body: bytes) -> TextSpans | None:
    """Return the spans of the last call's input, or of the text."""
    return _find_stream_spans(body) if is_event_stream_answer(body) else _find_plain_spans(body)


def _find_stream_spans(body: bytes) -> TextSpans | None:
    texts, calls = list[json_offsets.JsonSpan](), dict[int, list[json_offsets.JsonSpan]]()
    for _, value, members in find_event_objects(body):
        index = value.get("contentBlockIndex")
        delta = find_nested_members(body, members, b"delta")
        texts += find_string_member(body, delta, b"text")
        if not isinstance(index, int):
            continue
        if find_nested_members(body, members, b"start", b"toolUse"):
            calls.setdefault(index, [])
        given = find_nested_members(body, delta, b"toolUse")
        if index in calls:
            calls[index] += find_string_member(body, given, b"input")
    pieces = calls[max(calls)] if calls else texts
    return TextSpans(pieces=tuple(pieces)) if pieces else None


def _find_plain_spans(body: bytes) -> TextSpans | None:
    blocks = list(json_offsets.iter_json_objects(body, _find_message(body).get(b"content")))
    uses = [find_nested_members(body, block, b"toolUse") for block in blocks]
    inputs = [use[b"input"] for use in uses if b"input" in use]
    if inputs:
        return TextSpans(pieces=(), value=inputs[-1])
    texts = [span for block in blocks for span in find_string_member(body, block, b"text")]
    return TextSpans(pieces=tuple(texts)) if texts else None


def _find_message(body: bytes) -> Members:
    top = json_offsets.find_json_members(body, json_offsets.find_json_root(body))
    return find_nested_members(body, top, b"output", b"message")


def empty_answer(body: bytes) -> tuple[BodyEdit, ...]:
    """Return the edits that remove text and calls from a response."""
    return tuple(_empty_stream(body) if is_event_stream_answer(body) else _empty_plain(body))


def _empty_stream(body: bytes) -> Iterator[BodyEdit]:
    spans = list(find_event_objects(body))
    if not any("contentBlockIndex" in value for _, value, _ in spans):
        return
    for place, value, members in spans:
        if "contentBlockIndex" in value:
            yield BodyEdit(start=place.start, stop=place.stop, data=b"")
        else:
            yield from _edit_stop_reason(body, members)


def _empty_plain(body: bytes) -> Iterator[BodyEdit]:
    content = _find_message(body).get(b"content")
    if content is None or not list(json_offsets.iter_json_objects(body, content)):
        return
    yield BodyEdit(start=content[0], stop=content[1], data=b"[]")
    top = json_offsets.find_json_members(body, json_offsets.find_json_root(body))
    yield from _edit_stop_reason(body, top)


def _edit_stop_reason(body: bytes, members: Members) -> Iterator[BodyEdit]:
    for start, stop in find_string_member(body, members, b"stopReason"):
        if body[start:stop] == b'"tool_use"':
            yield BodyEdit(start=start, stop=stop, data=b'"end_turn"')
