"""What the dialects share: reading JSON whose shape nobody promised, and texts in their places."""

import json
from collections.abc import Iterator

import orjson

from traces import spans
from traces.model import Edit

type Span = spans.Span


def parsed(text: bytes) -> object:
    """The value of a JSON text, lone surrogates and all; ValueError where it is none."""
    try:
        return orjson.loads(text)
    except ValueError:
        if b"\\ud" not in text.lower():
            raise
        return json.loads(text.decode("utf-8", "surrogatepass"))


def load(body: bytes) -> dict[str, object]:
    """The JSON object in a body; empty where there is none."""
    try:
        return table(parsed(body))
    except ValueError:
        return {}


def objects(text: bytes) -> Iterator[dict[str, object]]:
    """The JSON objects that stand one after the other, as far as they are whole."""
    said, at, decoder = text.decode("utf-8", "surrogatepass").strip(), 0, json.JSONDecoder()
    while at < len(said):
        try:
            value, at = decoder.raw_decode(said, at)
        except ValueError:
            return
        yield table(value)


def table(value: object) -> dict[str, object]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, object]]:
    """The objects in a list; none where it is no list."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def string(value: object) -> str | None:
    """The value if it is text."""
    return value if isinstance(value, str) else None


def count(of: object, key: str) -> int | None:
    """A number in an object; None where it is not said."""
    number = table(of).get(key)
    return number if isinstance(number, int) else None


def text(content: object) -> str:
    """The text of a content: a string, or the joined texts of its parts."""
    if isinstance(content, str):
        return content
    return "".join(string(part.get("text")) or "" for part in tables(content))


def bare(content: object) -> object:
    """A content without what moves between requests that say the same.

    Clients mark the last messages with `cache_control`, and to do so make a list of parts of
    what was a string; in the next request the marks stand elsewhere.
    """
    if not isinstance(content, list):
        return content
    parts = [
        {key: value for key, value in part.items() if key != "cache_control"}
        if isinstance(part, dict)
        else part
        for part in content
    ]
    match parts:
        case [{"type": "text", "text": str(alone), **rest}] if not rest:
            return alone
    return parts


def value(body: bytes, of: dict[bytes, Span], key: bytes) -> object:
    """The parsed value of a member; None where it is absent."""
    return json.loads(body[slice(*of[key])]) if key in of else None


def strings(body: bytes, span: Span, keys: tuple[str, ...] = ("text",)) -> list[Span]:
    """Where the texts of a content stand: the content itself, or these members of its parts."""
    if body[span[0] : span[0] + 1] != b"[":
        return [span]
    parts = spans.objects(body, span)
    places = (part[name] for part in parts for key in keys if (name := key.encode()) in part)
    return sorted(place for place in places if body[place[0] : place[0] + 1] == b'"')


def put(body: bytes, places: list[Span], text: str) -> Iterator[Edit]:
    """The first place takes the text, the others become empty."""
    for index, (start, stop) in enumerate(places):
        yield Edit(start=start, stop=stop, data=dump(body, "" if index else text))


def dump(body: bytes, text: str) -> bytes:
    """A JSON string in the client's own style: raw UTF-8 if it sends any, else escapes."""
    return json.dumps(text, ensure_ascii=body.isascii()).encode("utf-8", "surrogatepass")


_PIECE = 24
"""Characters of text or arguments in one streamed delta."""


def pieces(text: str) -> Iterator[str]:
    """A text as a stream delivers it."""
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
