"""Errors of OpenAI chat completions.

Wire facts (openai 3 for Python, and the error guide of its documentation): an error is an object
`error` with `message`, `type`, `param` and `code`; in a stream it is the data of an event, after
which the SDK raises `APIError`.
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

ID_PREFIX = "chatcmpl-"
ERRORS: Mapping[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "Invalid request."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: (
        "invalid_request_error",
        "insufficient_permissions",
        "You have insufficient permissions for this operation.",
    ),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: (
        "tokens",
        "rate_limit_exceeded",
        "Rate limit reached for tokens per min (TPM). Please try again later.",
    ),
    503: (
        "server_error",
        None,
        "The engine is currently overloaded, please try again later.",
    ),
}
_OTHER = ("server_error", None, "The server had an error while processing your request.")


def make_openai_error(status: int, message: str | None = None) -> dict[str, object]:
    """Return the `error` object for this status."""
    unknown = _OTHER if status >= 500 else ERRORS[400]
    kind, code, words = ERRORS.get(status, unknown)
    return {"message": message or words, "type": kind, "param": None, "code": code}


def make_model_error_body(status: int, message: str | None = None) -> bytes:
    """Return the body of a response with this status."""
    return orjson.dumps({"error": make_openai_error(status, message)})


def make_stream_error() -> bytes:
    """Return the event that ends a stream with an error."""
    return b"data: " + make_model_error_body(500) + b"\n\n"


def find_text_spans(body: bytes) -> TextSpans | None:
    """Return the spans of the last call's arguments, or of the text."""
    calls, text = dict[int, list[json_offsets.JsonSpan]](), list[json_offsets.JsonSpan]()
    for choice in _find_first_choices(body):
        message = find_nested_members(body, choice, b"delta") or find_nested_members(
            body, choice, b"message"
        )
        text += find_string_member(body, message, b"content")
        for place, call in enumerate(
            json_offsets.iter_json_objects(body, message.get(b"tool_calls"))
        ):
            index = int(body[slice(*call[b"index"])]) if b"index" in call else place
            arguments = find_string_member(
                body, find_nested_members(body, call, b"function"), b"arguments"
            )
            calls.setdefault(index, []).extend(arguments)
    pieces = calls[max(calls)] if calls else text
    return TextSpans(pieces=tuple(pieces)) if pieces else None


def empty_answer(body: bytes) -> tuple[BodyEdit, ...]:
    """Return the edits that remove text and calls from a response."""
    removals, finish_reasons = list[BodyEdit](), list[BodyEdit]()
    for choice in _find_first_choices(body):
        message = find_nested_members(body, choice, b"delta") or find_nested_members(
            body, choice, b"message"
        )
        for start, stop in find_string_member(body, message, b"content"):
            if stop - start > 2:
                removals.append(BodyEdit(start=start, stop=stop, data=b'""'))
        if (calls := message.get(b"tool_calls")) and body[calls[0] : calls[0] + 1] == b"[":
            removals.append(BodyEdit(start=calls[0], stop=calls[1], data=b"null"))
        for start, stop in find_string_member(body, choice, b"finish_reason"):
            if body[start:stop] == b'"tool_calls"':
                finish_reasons.append(BodyEdit(start=start, stop=stop, data=b'"stop"'))
    return tuple(sorted(removals + finish_reasons, key=lambda edit: edit.start)) if removals else ()


def _find_first_choices(body: bytes) -> Iterator[Members]:
    """Yield the first choice of the response, or of each event."""
    if is_event_stream_answer(body):
        tops = [members for _, _, members in find_event_objects(body)]
    else:
        tops = [json_offsets.find_json_members(body, json_offsets.find_json_root(body))]
    for top in tops:
        yield from list(json_offsets.iter_json_objects(body, top.get(b"choices")))[:1]
