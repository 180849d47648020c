"""Rebuild, byte for byte, conversations that OpenAI's responses API stores at the provider.

Over a WebSocket, and with `previous_response_id`, a request holds only new items. A provider that
never gave that response (it is on a tape) must be sent everything: the items of the earlier
requests and responses as they were written, then the new ones.
"""

from collections.abc import Iterable, Sequence

from traces.bodies import json_offsets
from traces.dialects import json_access

type RawItems = tuple[bytes, ...]
"""Conversation items, each the JSON text as it was sent."""

_WEBSOCKET_ONLY = (b"previous_response_id", b"type", b"generate", b"stream", b"background")
"""Members of a turn that an HTTP request must not have, or that are added separately."""


def read_previous_id(body: bytes) -> str | None:
    """Return the id of the response that a request continues."""
    return (
        json_access.to_optional_string(
            json_access.read_body_object(body).get("previous_response_id")
        )
        or None
    )


def read_input_items(body: bytes) -> RawItems:
    """Return the items in a request."""
    span = json_offsets.find_json_members(body, json_offsets.find_json_root(body)).get(b"input")
    if span is None:
        return ()
    start, stop = span
    if body[start : start + 1] == b"[":
        return tuple(body[a:b] for a, b in json_offsets.iter_json_items(body, start))
    return (b'{"type":"message","role":"user","content":' + body[start:stop] + b"}",)


def read_completed_answer(events: Iterable[bytes]) -> tuple[str, RawItems] | None:
    """Return the id of a response and its items, from its events; None if it was not completed."""
    done_items: list[bytes] = []
    for event in events:
        match json_access.load_json_object(event).get("type"):
            case "response.output_item.done":
                done_items.append(_slice_event_member(event, b"item"))
            case "response.completed" | "response.done":
                response = _slice_event_member(event, b"response")
                output = json_offsets.find_json_members(response, 0).get(b"output")
                output_spans = (
                    [] if output is None else json_offsets.iter_json_items(response, output[0])
                )
                items = tuple(done_items) or tuple(response[a:b] for a, b in output_spans)
                return json_access.to_optional_string(
                    json_access.load_json_object(response).get("id")
                ) or "", items
    return None


def _slice_event_member(event: bytes, name: bytes) -> bytes:
    start, stop = json_offsets.find_json_members(event, json_offsets.find_json_root(event))[name]
    return event[start:stop]


def make_full_request(body: bytes, before: Sequence[bytes]) -> bytes:
    """Return the HTTP request equivalent to a turn: all items, streamed."""
    members = json_offsets.find_json_members(body, json_offsets.find_json_root(body))
    kept_members = {
        key: body[slice(*place)] for key, place in members.items() if key not in _WEBSOCKET_ONLY
    }
    kept_members[b"input"] = b"[" + b",".join((*before, *read_input_items(body))) + b"]"
    encoded = b",".join(b'"%b":%b' % (key, text) for key, text in kept_members.items())
    return b'{"stream":true,' + encoded + b"}"
