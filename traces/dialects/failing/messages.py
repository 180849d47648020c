"""How Anthropic messages go wrong.

Wire facts (Anthropic's documentation, "Errors" and "Streaming messages"): an error is
`{"type": "error", "error": {"type", "message"}}`; in a stream it is an event `error`, which the
SDK raises as an `APIStatusError` with the stream's own status, 200.
"""

from collections.abc import Mapping

import orjson

from traces import spans
from traces.dialects import wire
from traces.dialects.failing.spots import Members, Spots, events, is_stream, strings, within
from traces.model import Edit

ID = "msg_"
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


def failure(status: int, message: str | None = None) -> bytes:
    """The body of an answer with this status."""
    kind, words = ERRORS.get(status, ERRORS[500 if status >= 500 else 400])
    error = {"type": kind, "message": message or words}
    return orjson.dumps({"type": "error", "error": error})


def breakdown() -> bytes:
    """The event by which a stream says that nothing more comes."""
    return b"event: error\ndata: " + failure(529) + b"\n\n"


def spots(body: bytes) -> Spots | None:
    """Where the last call's input stands, or the last text."""
    return _streamed(body) if is_stream(body) else _whole(body)


def _whole(body: bytes) -> Spots | None:
    blocks = list(spans.objects(body, _top(body).get(b"content")))
    calls = [block[b"input"] for block in blocks if _is(body, block, "tool_use", b"input")]
    if calls:
        return Spots(pieces=(), value=calls[-1])
    texts = [block[b"text"] for block in blocks if _is(body, block, "text", b"text")]
    return Spots(pieces=(texts[-1],)) if texts else None


def _is(body: bytes, block: Members, kind: str, needs: bytes) -> bool:
    return needs in block and wire.value(body, block, b"type") == kind


def _streamed(body: bytes) -> Spots | None:
    texts, calls = dict[int, list[spans.Span]](), dict[int, list[spans.Span]]()
    for _, value, members in events(body):
        index, delta = wire.count(value, "index") or 0, within(body, members, b"delta")
        if wire.table(value.get("content_block")).get("type") == "tool_use":
            calls[index] = []
        elif index in calls:
            calls[index] += strings(body, delta, b"partial_json")
        elif found := strings(body, delta, b"text"):
            texts.setdefault(index, []).extend(found)
    blocks = calls or texts
    pieces = blocks[max(blocks)] if blocks else []
    return Spots(pieces=tuple(pieces)) if pieces else None


def emptied(body: bytes) -> tuple[Edit, ...]:
    """The edits that leave an answer with neither text nor calls."""
    said, ends = list[Edit](), list[Edit]()
    if is_stream(body):
        for place, value, members in events(body):
            if str(value.get("type")).startswith("content_block_"):
                said.append(Edit(start=place.start, stop=place.stop, data=b""))
            ends += _ended(body, within(body, members, b"delta"))
    else:
        top = _top(body)
        if list(spans.objects(body, top.get(b"content"))):
            said.append(Edit(start=top[b"content"][0], stop=top[b"content"][1], data=b"[]"))
        ends += _ended(body, top)
    return tuple(sorted(said + ends, key=lambda edit: edit.start)) if said else ()


def _ended(body: bytes, members: Members) -> list[Edit]:
    return [
        Edit(start=start, stop=stop, data=b'"end_turn"')
        for start, stop in strings(body, members, b"stop_reason")
        if body[start:stop] == b'"tool_use"'
    ]


def _top(body: bytes) -> Members:
    return spans.members(body, spans.root(body))
