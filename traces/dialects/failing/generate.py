"""How Gemini's generateContent goes wrong.

Wire facts (Gemini API, "Troubleshooting"; google-genai reads the same): an error is an
object `error` with `code`, `message` and `status`; in a stream it is the data of an event.
"""

from collections.abc import Iterator, Mapping

import orjson

from traces import spans
from traces.dialects import wire
from traces.dialects.failing.spots import Members, Spots, events, is_stream, strings, within
from traces.model import Edit

ID = "gen-"
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


def failure(status: int, message: str | None = None) -> bytes:
    """The body of an answer with this status."""
    name, words = ERRORS.get(status, ERRORS[500 if status >= 500 else 400])
    return orjson.dumps({"error": {"code": status, "message": message or words, "status": name}})


def breakdown() -> bytes:
    """The event by which a stream says that nothing more comes."""
    return b"data: " + failure(503) + b"\r\n\r\n"


def spots(body: bytes) -> Spots | None:
    """Where the last call's arguments stand, or the text in its pieces."""
    calls, texts = list[spans.Span](), list[spans.Span]()
    for content in _contents(body):
        for part in spans.objects(body, content.get(b"parts")):
            call = within(body, part, b"functionCall")
            if b"args" in call:
                calls.append(call[b"args"])
            elif b"thought" not in part:
                texts += strings(body, part, b"text")
    if calls:
        return Spots(pieces=(), value=calls[-1])
    return Spots(pieces=tuple(texts)) if texts else None


def emptied(body: bytes) -> tuple[Edit, ...]:
    """The edits that leave an answer with neither text nor calls."""
    said = [
        Edit(start=parts[0], stop=parts[1], data=b'[{"text": ""}]')
        for content in _contents(body)
        if (parts := content.get(b"parts")) and wire.parsed(body[slice(*parts)]) not in ([], _NONE)
    ]
    return tuple(said)


_NONE = [{"text": ""}]


def _contents(body: bytes) -> Iterator[Members]:
    """The content of the first candidate, of the answer or of each event."""
    if is_stream(body):
        tops = [members for _, _, members in events(body)]
    else:
        tops = [spans.members(body, spans.root(body))]
    for top in tops:
        for candidate in list(spans.objects(body, top.get(b"candidates")))[:1]:
            yield within(body, candidate, b"content")
