"""A text in an answer, wherever it stands: in pieces along a stream, and whole in later events."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from traces import spans, sse
from traces.dialects import wire
from traces.model import Edit

type Members = dict[bytes, spans.Span]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spots:
    """Where one text of an answer stands."""

    pieces: tuple[spans.Span, ...]
    """JSON strings that make the text when they are joined."""
    wholes: tuple[spans.Span, ...] = ()
    """JSON strings that say all of it again."""
    value: spans.Span | None = None
    """An object that is the text, where the dialect has no string for it."""

    def text(self, body: bytes) -> str:
        """The text."""
        if self.value is not None:
            return body[slice(*self.value)].decode("utf-8", "surrogatepass")
        return "".join(_string(body, piece) for piece in self.pieces)

    def put(self, body: bytes, text: str) -> tuple[Edit, ...]:
        """The edits that say another text; what both begin with stays in its pieces.

        Of an object the members are left that are whole in the text.
        """
        if self.value is not None:
            return _shorter(body, self.value, text)
        edits, at = list[Edit](), 0
        for piece in self.pieces:
            was = _string(body, piece)
            now = was if text.startswith(was, at) else text[at:]
            if piece == self.pieces[-1]:
                now = text[at:]
            at += len(now)
            edits += _instead(body, piece, was, now)
        for whole in self.wholes:
            edits += _instead(body, whole, _string(body, whole), text)
        return tuple(sorted(edits, key=lambda edit: edit.start))


def _string(body: bytes, span: spans.Span) -> str:
    return str(json.loads(body[slice(*span)]))


def _instead(body: bytes, span: spans.Span, was: str, now: str) -> Iterator[Edit]:
    if was != now:
        yield Edit(start=span[0], stop=span[1], data=wire.dump(body, now))


def _shorter(body: bytes, value: spans.Span, text: str) -> tuple[Edit, ...]:
    start, stop = value
    size = len(text.encode("utf-8", "surrogatepass"))
    members = spans.members(body, start).values()
    ends = [end for _, end in members if end - start <= size]
    if len(ends) == len(members):
        return ()
    return (Edit(start=max(ends, default=start + 1), stop=stop, data=b"}"),)


def events(body: bytes) -> Iterator[tuple[sse.Place, dict[str, object], Members]]:
    """Each event of a stream whose data is an object: where it stands, its value, its members."""
    for place in sse.places(body):
        value = wire.load(body[slice(*place.data)])
        if value:
            yield place, value, spans.members(body, place.data[0])


def within(body: bytes, members: Members, *path: bytes) -> Members:
    """The members of an object that lies so deep; none where there is no object."""
    for name in path:
        span = members.get(name)
        if span is None or body[span[0] : span[0] + 1] != b"{":
            return {}
        members = spans.members(body, span[0])
    return members


def strings(body: bytes, members: Members, name: bytes) -> tuple[spans.Span, ...]:
    """Where a member is, if it is a string."""
    span = members.get(name)
    return (span,) if span is not None and body[span[0] : span[0] + 1] == b'"' else ()


def is_stream(body: bytes) -> bool:
    """Whether these are events and not one value."""
    return body.lstrip()[:1] != b"{"
