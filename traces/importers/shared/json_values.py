"""Parse JSON as other programs write it: also NaN, Infinity, half a surrogate pair, and a BOM.

NaN and Infinity become None (unknown); half a surrogate pair becomes U+FFFD.
"""

import json

import orjson

MAX_CONTAINERS = 1_500_000
"""Maximum number of lists and objects of a document; each takes 60 to 250 bytes of memory."""
MAX_VALUES = 8_000_000
BOM = b"\xef\xbb\xbf"


def parse_json(data: bytes) -> object:
    """Parse a document; ValueError if it is invalid, nested too deeply, or has too many values."""
    data = data.removeprefix(BOM)
    if data.count(b"{") + data.count(b"[") > MAX_CONTAINERS or data.count(b",") > MAX_VALUES:
        raise ValueError(f"it has more than {MAX_CONTAINERS:,} lists and objects")
    try:
        document: object = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _parse_lenient_json(data, error)
    return document


def _parse_lenient_json(data: bytes, error: orjson.JSONDecodeError) -> object:
    try:
        document: object = json.loads(data, parse_constant=lambda _: None)
        return _replace_half_surrogates(document)
    except RecursionError:
        raise ValueError("it is no JSON: nested too deeply") from None
    except ValueError:  # also a number with too many digits
        raise ValueError(f"it is no JSON: {error}") from None


def _replace_half_surrogates(value: object) -> object:
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case list():
            return [_replace_half_surrogates(each) for each in value]
        case dict():
            return {
                _replace_half_surrogates(key): _replace_half_surrogates(each)
                for key, each in value.items()
            }
    return value


def to_object(value: object) -> dict[str, object]:
    """Return an object as it is, anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def to_objects(value: object) -> list[dict[str, object]]:
    """Return the objects in a list; empty if it is none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def require_objects(value: object, what: str) -> list[dict[str, object]]:
    """Return a list of objects; ValueError if it is anything else."""
    if not isinstance(value, list):
        raise ValueError(f"it has no list of {what}")
    if len(objects := to_objects(value)) < len(value):
        raise ValueError(f"not all of its {what} are objects")
    return objects


def to_json_text(value: object) -> str:
    """Return a text as it is, None as an empty one, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def join_text_parts(content: object) -> str:
    """Return a text, or the joined texts of a list of parts."""
    if isinstance(content, list):
        texts = [each if isinstance(each, str) else to_object(each).get("text") for each in content]
        return "\n".join(text for text in texts if isinstance(text, str) and text)
    return content if isinstance(content, str) else ""
