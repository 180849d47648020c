"""Conversations that OpenAI's responses keep at the provider, put together again by the byte.

Over a WebSocket, and wherever `previous_response_id` is used, a request holds only what is new.
A provider that never gave that answer (it stands on a tape) must be sent all of it: the items of
the earlier requests and answers as they were written, and then the new ones.
"""

from collections.abc import Iterable, Sequence

from traces import spans
from traces.dialects import wire

type Items = tuple[bytes, ...]
"""Conversation items, each the JSON text as it was sent."""

_SAYS_WHERE = (b"previous_response_id", b"type", b"generate", b"stream", b"background")
"""What of a turn makes no sense in a request over HTTP, or is said anew."""


def previous(body: bytes) -> str | None:
    """The answer that a request goes on from."""
    return wire.string(wire.load(body).get("previous_response_id")) or None


def asked(body: bytes) -> Items:
    """The items in a request."""
    given = spans.members(body, spans.root(body)).get(b"input")
    if given is None:
        return ()
    start, stop = given
    if body[start : start + 1] == b"[":
        return tuple(body[a:b] for a, b in spans.items(body, start))
    return (b'{"type":"message","role":"user","content":' + body[start:stop] + b"}",)


def answered(events: Iterable[bytes]) -> tuple[str, Items] | None:
    """The id of an answer and its items, out of its events; None where it was not completed."""
    told: list[bytes] = []
    for event in events:
        match wire.load(event).get("type"):
            case "response.output_item.done":
                told.append(_member(event, b"item"))
            case "response.completed" | "response.done":
                response = _member(event, b"response")
                output = spans.members(response, 0).get(b"output")
                listed = [] if output is None else spans.items(response, output[0])
                items = tuple(told) or tuple(response[a:b] for a, b in listed)
                return wire.string(wire.load(response).get("id")) or "", items
    return None


def _member(event: bytes, name: bytes) -> bytes:
    start, stop = spans.members(event, spans.root(event))[name]
    return event[start:stop]


def resent(body: bytes, before: Sequence[bytes]) -> bytes:
    """The request over HTTP that asks what a turn asked: everything, streamed."""
    members = spans.members(body, spans.root(body))
    said = {key: body[slice(*place)] for key, place in members.items() if key not in _SAYS_WHERE}
    said[b"input"] = b"[" + b",".join((*before, *asked(body))) + b"]"
    told = b",".join(b'"%b":%b' % (key, text) for key, text in said.items())
    return b'{"stream":true,' + told + b"}"
