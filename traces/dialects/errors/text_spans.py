"""Spans of one text in a response: in pieces along a stream, and in full in later events."""

import json
from collections.abc import Iterator

from msgspec import Struct

from traces.bodies import json_offsets, sse
from traces.dialects import json_access
from traces.model import BodyEdit

type Members = dict[bytes, json_offsets.JsonSpan]


class TextSpans(Struct, frozen=True, kw_only=True):
    """The spans of one text of a response."""

    pieces: tuple[json_offsets.JsonSpan, ...]
    """JSON strings that form the text when joined."""
    wholes: tuple[json_offsets.JsonSpan, ...] = ()
    """JSON strings that repeat the full text."""
    value: json_offsets.JsonSpan | None = None
    """An object that is the text, if the dialect has no string for it."""

    def read_text(self, body: bytes) -> str:
        """Return the text."""
        if self.value is not None:
            return body[slice(*self.value)].decode("utf-8", "surrogatepass")
        return "".join(_read_json_string(body, piece) for piece in self.pieces)

    def replace_text(self, body: bytes, text: str) -> tuple[BodyEdit, ...]:
        """Return the edits that replace the text; the common prefix stays in its pieces.

        An object keeps only the members that fit completely into the new text.
        """
        if self.value is not None:
            return _shorten_json_object(body, self.value, text)
        edits, at = list[BodyEdit](), 0
        for piece in self.pieces:
            old = _read_json_string(body, piece)
            new = old if text.startswith(old, at) else text[at:]
            if piece == self.pieces[-1]:
                new = text[at:]
            at += len(new)
            edits += _replace_json_string(body, piece, old, new)
        for repeated in self.wholes:
            edits += _replace_json_string(body, repeated, _read_json_string(body, repeated), text)
        return tuple(sorted(edits, key=lambda edit: edit.start))


def _read_json_string(body: bytes, span: json_offsets.JsonSpan) -> str:
    return str(json.loads(body[slice(*span)]))


def _replace_json_string(
    body: bytes, span: json_offsets.JsonSpan, was: str, now: str
) -> Iterator[BodyEdit]:
    if was != now:
        yield BodyEdit(start=span[0], stop=span[1], data=json_access.dump_json_string(body, now))


def _shorten_json_object(
    body: bytes, value: json_offsets.JsonSpan, text: str
) -> tuple[BodyEdit, ...]:
    start, stop = value
    size = len(text.encode("utf-8", "surrogatepass"))
    members = json_offsets.find_json_members(body, start).values()
    ends = [end for _, end in members if end - start <= size]
    if len(ends) == len(members):
        return ()
    return (BodyEdit(start=max(ends, default=start + 1), stop=stop, data=b"}"),)


def find_event_objects(
    body: bytes,
) -> Iterator[tuple[sse.SseEventSpan, dict[str, object], Members]]:
    """Yield span, value and members of each stream event whose data is an object."""
    for place in sse.find_sse_event_spans(body):
        value = json_access.load_json_object(body[slice(*place.data)])
        if value:
            yield place, value, json_offsets.find_json_members(body, place.data[0])


def find_nested_members(body: bytes, members: Members, *path: bytes) -> Members:
    """Return the members of the object at this path; empty if the path has no object."""
    for name in path:
        span = members.get(name)
        if span is None or body[span[0] : span[0] + 1] != b"{":
            return {}
        members = json_offsets.find_json_members(body, span[0])
    return members


def find_string_member(
    body: bytes, members: Members, name: bytes
) -> tuple[json_offsets.JsonSpan, ...]:
    """Return the span of a member if it is a string."""
    span = members.get(name)
    return (span,) if span is not None and body[span[0] : span[0] + 1] == b'"' else ()


def is_event_stream_answer(body: bytes) -> bool:
    """Whether the body is a stream of events rather than one value."""
    return body.lstrip()[:1] != b"{"
