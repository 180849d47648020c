"""Errors of Gemini's generateContent.

Wire facts (Gemini API, "Troubleshooting"; google-genai reads the same): an error is an object
`error` with `code`, `message` and `status`; in a stream it is the data of an event.
"""

from collections.abc import Iterator, Mapping

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

ID_PREFIX = "gen-"
ERRORS: Mapping[int, tuple[str, str]] = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    403: ("PERMISSION_DENIED", "The caller does not have permission."),
    404: ("NOT_FOUND", "The model is not found for this API version."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    500: ("INTERNAL", "An internal error has occurred. Please retry."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "The request timed out."),
}


def make_model_error_body(status: int, message: str | None = None) -> bytes:
    """Return the body of a response with this status."""
    name, words = ERRORS.get(status, ERRORS[500 if status >= 500 else 400])
    return orjson.dumps({"error": {"code": status, "message": message or words, "status": name}})


def make_stream_error() -> bytes:
    """Return the event that ends a stream with an error."""
    return b"data: " + make_model_error_body(503) + b"\r\n\r\n"


def find_text_spans(body: bytes) -> TextSpans | None:
    """Return the span of the last call's arguments, or the spans of the text."""
    calls, texts = list[json_offsets.JsonSpan](), list[json_offsets.JsonSpan]()
    for content in _find_candidate_contents(body):
        for part in json_offsets.iter_json_objects(body, content.get(b"parts")):
            call = find_nested_members(body, part, b"functionCall")
            if b"args" in call:
                calls.append(call[b"args"])
            elif b"thought" not in part:
                texts += find_string_member(body, part, b"text")
    if calls:
        return TextSpans(pieces=(), value=calls[-1])
    return TextSpans(pieces=tuple(texts)) if texts else None


def empty_answer(body: bytes) -> tuple[BodyEdit, ...]:
    """Return the edits that remove text and calls from a response."""
    edits = [
        BodyEdit(start=parts[0], stop=parts[1], data=b'[{"text": ""}]')
        for content in _find_candidate_contents(body)
        if (parts := content.get(b"parts"))
        and json_access.parse_json_text(body[slice(*parts)]) not in ([], _NONE)
    ]
    return tuple(edits)


_NONE = [{"text": ""}]


def _find_candidate_contents(body: bytes) -> Iterator[Members]:
    """Yield the content of the first candidate, of the response or of each event."""
    if is_event_stream_answer(body):
        tops = [members for _, _, members in find_event_objects(body)]
    else:
        tops = [json_offsets.find_json_members(body, json_offsets.find_json_root(body))]
    for top in tops:
        for candidate in list(json_offsets.iter_json_objects(body, top.get(b"candidates")))[:1]:
            yield find_nested_members(body, candidate, b"content")
