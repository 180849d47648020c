"""How OpenAI chat completions go wrong.

Wire facts (openai 3 for Python, and the error guide of its documentation): an error is an object
`error` with `message`, `type`, `param` and `code`; in a stream it is the data of an event, after
which the SDK raises `APIError`.
"""

from collections.abc import Iterator, Mapping

import orjson

from traces import spans
from traces.dialects.failing.spots import Members, Spots, events, is_stream, strings, within
from traces.model import Edit

ID = "chatcmpl-"
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


def error(status: int, message: str | None = None) -> dict[str, object]:
    """The object that says what is wrong."""
    unknown = _OTHER if status >= 500 else ERRORS[400]
    kind, code, words = ERRORS.get(status, unknown)
    return {"message": message or words, "type": kind, "param": None, "code": code}


def failure(status: int, message: str | None = None) -> bytes:
    """The body of an answer with this status."""
    return orjson.dumps({"error": error(status, message)})


def breakdown() -> bytes:
    """The event by which a stream says that nothing more comes."""
    return b"data: " + failure(500) + b"\n\n"


def spots(body: bytes) -> Spots | None:
    """Where the last call's arguments stand, or the text."""
    calls, text = dict[int, list[spans.Span]](), list[spans.Span]()
    for choice in _choices(body):
        said = within(body, choice, b"delta") or within(body, choice, b"message")
        text += strings(body, said, b"content")
        for place, call in enumerate(spans.objects(body, said.get(b"tool_calls"))):
            index = int(body[slice(*call[b"index"])]) if b"index" in call else place
            found = strings(body, within(body, call, b"function"), b"arguments")
            calls.setdefault(index, []).extend(found)
    pieces = calls[max(calls)] if calls else text
    return Spots(pieces=tuple(pieces)) if pieces else None


def emptied(body: bytes) -> tuple[Edit, ...]:
    """The edits that leave an answer with neither text nor calls."""
    said, ends = list[Edit](), list[Edit]()
    for choice in _choices(body):
        message = within(body, choice, b"delta") or within(body, choice, b"message")
        for start, stop in strings(body, message, b"content"):
            if stop - start > 2:
                said.append(Edit(start=start, stop=stop, data=b'""'))
        if (calls := message.get(b"tool_calls")) and body[calls[0] : calls[0] + 1] == b"[":
            said.append(Edit(start=calls[0], stop=calls[1], data=b"null"))
        for start, stop in strings(body, choice, b"finish_reason"):
            if body[start:stop] == b'"tool_calls"':
                ends.append(Edit(start=start, stop=stop, data=b'"stop"'))
    return tuple(sorted(said + ends, key=lambda edit: edit.start)) if said else ()


def _choices(body: bytes) -> Iterator[Members]:
    """The first choice of the answer, or of each event."""
    if is_stream(body):
        tops = [members for _, _, members in events(body)]
    else:
        tops = [spans.members(body, spans.root(body))]
    for top in tops:
        yield from list(spans.objects(body, top.get(b"choices")))[:1]
