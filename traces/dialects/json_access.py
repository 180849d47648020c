"""Shared by the dialects: read JSON of unknown shape, and edit strings in place."""

import json
from collections.abc import Iterator, Mapping

import orjson

from traces.bodies import json_offsets
from traces.identity_cache import cache_by_identity
from traces.model import BodyEdit

type Span = json_offsets.JsonSpan


def parse_json_text(text: bytes) -> object:
    """Parse a JSON text, lone surrogates included; ValueError if it is invalid."""
    try:
        return orjson.loads(text)
    except ValueError:
        if b"\\ud" not in text.lower():
            raise
        return json.loads(text.decode("utf-8", "surrogatepass"))


def load_json_object(text: bytes) -> dict[str, object]:
    """Return the JSON object in a text; empty if it is none."""
    try:
        return to_json_object(parse_json_text(text))
    except ValueError:
        return {}


@cache_by_identity(2)  # the bodies of an exchange
def read_body_object(body: bytes) -> Mapping[str, object]:
    """Return the JSON object in a body, which is parsed once; empty if it is none."""
    return load_json_object(body)


def read_json_sequence(text: bytes) -> Iterator[dict[str, object]]:
    """Yield concatenated JSON objects, up to the first incomplete one."""
    decoded, at, decoder = text.decode("utf-8", "surrogatepass").strip(), 0, json.JSONDecoder()
    while at < len(decoded):
        try:
            value, at = decoder.raw_decode(decoded, at)
        except ValueError:
            return
        yield to_json_object(value)


def to_json_object(value: object) -> dict[str, object]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def to_json_objects(value: object) -> list[dict[str, object]]:
    """Return the objects in a list; empty if it is not a list."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def to_optional_string(value: object) -> str | None:
    """Return the value if it is text, else None."""
    return value if isinstance(value, str) else None


def get_integer(of: object, key: str) -> int | None:
    """Return an integer member of an object; None if it is missing."""
    number = to_json_object(of).get(key)
    return number if isinstance(number, int) else None


def join_content_text(content: object) -> str:
    """Return the text of a content: a string, or the joined texts of its parts."""
    if isinstance(content, str):
        return content
    return "".join(to_optional_string(part.get("text")) or "" for part in to_json_objects(content))


def normalize_content(content: object) -> object:
    """Return a content without the parts that differ between equal requests.

    Clients mark the last messages with `cache_control`, and for that convert a string to a list of
    parts; in the next request the marks are elsewhere.
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
        case [{"type": "text", "text": str(single_text), **rest}] if not rest:
            return single_text
    return parts


def dump_json_text(value: object) -> str:
    """Return a parsed value as JSON text; a text as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_member_value(body: bytes, of: dict[bytes, Span], key: bytes) -> object:
    """Return the parsed value of a member; None if it is absent."""
    return json.loads(body[slice(*of[key])]) if key in of else None


def find_content_strings(body: bytes, span: Span, keys: tuple[str, ...] = ("text",)) -> list[Span]:
    """Return the spans of a content's texts: the content itself, or these members of its parts."""
    if body[span[0] : span[0] + 1] != b"[":
        return [span]
    parts = json_offsets.iter_json_objects(body, span)
    places = (part[name] for part in parts for key in keys if (name := key.encode()) in part)
    return sorted(place for place in places if body[place[0] : place[0] + 1] == b'"')


def replace_string_spans(body: bytes, places: list[Span], text: str) -> Iterator[BodyEdit]:
    """Yield the edits that put the text in the first span and empty the others."""
    for index, (start, stop) in enumerate(places):
        yield BodyEdit(start=start, stop=stop, data=dump_json_string(body, "" if index else text))


def dump_json_string(body: bytes, text: str) -> bytes:
    """Encode a JSON string in the client's style: raw UTF-8 if it sends any, else escapes."""
    return json.dumps(text, ensure_ascii=body.isascii()).encode("utf-8", "surrogatepass")


_PIECE = 24
"""Characters of text or arguments in one streamed delta."""


def split_into_deltas(text: str) -> Iterator[str]:
    """Split a text as a stream delivers it."""
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
