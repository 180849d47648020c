"""How OpenAI responses go wrong.

Wire facts (openai 3 for Python, `ResponseErrorEvent`): an error over HTTP is as of chat
completions; in a stream it is an event `error` with `code`, `message` and `param`. What an item
says comes in deltas, then whole in events of its end, and once more in the whole response.
"""

import orjson

from traces import spans
from traces.dialects import wire
from traces.dialects.failing import chat
from traces.dialects.failing.spots import Members, Spots, events, is_stream, strings, within
from traces.model import Edit

ID = "resp_"
_ARGUMENTS = (b"arguments", b"input")
_KEPT = ("created", "queued", "in_progress", "completed", "incomplete", "failed")
"""Events that say nothing but what the response is."""


def failure(status: int, message: str | None = None) -> bytes:
    """The body of an answer with this status."""
    return chat.failure(status, message)


def breakdown() -> bytes:
    """The event by which a stream says that nothing more comes."""
    said = "The server had an error while processing your request."
    error = {"type": "error", "code": "server_error", "message": said, "param": None}
    return b"event: error\ndata: " + orjson.dumps(error) + b"\n\n"


def spots(body: bytes) -> Spots | None:
    """Where the last call's arguments stand, or the last text."""
    return _streamed(body) if is_stream(body) else _whole(body)


def _whole(body: bytes) -> Spots | None:
    items = _output(body, spans.members(body, spans.root(body)))
    found = [strings(body, item, name) for item in items if (name := _argument(item))]
    found = found or [texts for item in items if (texts := _texts(body, item))]
    return Spots(pieces=found[-1][-1:]) if found and found[-1] else None


def _streamed(body: bytes) -> Spots | None:
    pieces, wholes = dict[int, list[spans.Span]](), dict[int, list[spans.Span]]()
    calls = set[int]()
    for _, value, members in events(body):
        index, kind = wire.count(value, "output_index") or 0, str(value.get("type"))
        item = within(body, members, b"item")
        if _argument(item):
            calls.add(index)
        if kind.endswith((".output_text.delta", "_arguments.delta", "_input.delta")):
            pieces.setdefault(index, []).extend(strings(body, members, b"delta"))
        elif kind.endswith(".done"):
            here = within(body, members, b"part") or item or members
            wholes.setdefault(index, []).extend(_said(body, here))
        for number, item in enumerate(_output(body, within(body, members, b"response"))):
            wholes.setdefault(number, []).extend(_said(body, item))
    of = max(calls or pieces, default=None)
    if of is None or not pieces.get(of):
        return None
    return Spots(pieces=tuple(pieces[of]), wholes=tuple(wholes.get(of, ())))


def _output(body: bytes, response: Members) -> list[Members]:
    return list(spans.objects(body, response.get(b"output")))


def _argument(item: Members) -> bytes | None:
    """The member that holds what a call is given; None where it is no call."""
    return next((name for name in _ARGUMENTS if name in item and b"call_id" in item), None)


def _texts(body: bytes, item: Members) -> tuple[spans.Span, ...]:
    parts = spans.objects(body, item.get(b"content"))
    return tuple(span for part in parts for span in strings(body, part, b"text"))


def _said(body: bytes, of: Members) -> tuple[spans.Span, ...]:
    """Where an item, a part or an event says the whole text, or the whole arguments."""
    names = (b"text", *_ARGUMENTS)
    return tuple(at for name in names for at in strings(body, of, name)) or _texts(body, of)


def emptied(body: bytes) -> tuple[Edit, ...]:
    """The edits that leave an answer with neither text nor calls."""
    if not is_stream(body):
        return _nothing(body, spans.members(body, spans.root(body)))
    edits = list[Edit]()
    for place, value, members in events(body):
        kind = str(value.get("type")).removeprefix("response.")
        if kind in _KEPT:
            edits += _nothing(body, within(body, members, b"response"))
        elif kind != "error":
            edits.append(Edit(start=place.start, stop=place.stop, data=b""))
    return tuple(edits)


def _nothing(body: bytes, response: Members) -> tuple[Edit, ...]:
    if not _output(body, response):
        return ()
    start, stop = response[b"output"]
    return (Edit(start=start, stop=stop, data=b"[]"),)
