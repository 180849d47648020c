"""One form for JSON that says the same thing, whatever its spacing, key order or escapes."""

import json
import re
from hashlib import blake2b

import orjson

_EXACT_INTEGER = re.compile(r"-0|\d{19}")
"""Text with an integer that an int or a float does not say as it was written."""


def canonical(text: bytes | str) -> bytes:
    """Canonical JSON of a JSON text, exact for integers of any size.

    ValueError (json.JSONDecodeError) where the text is no JSON.
    """
    value = json.loads(text)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def exact_value(text: bytes) -> object:
    """A JSON text as a value from which two texts differ unless they say the same.

    What remains of a text is all but spacing, the order of keys and how a string is escaped. A
    number that has other forms (1.0 is not 1, 1e400 is not null) is its text, as bytes.
    ValueError for a text that is no JSON in UTF-8, or has a key twice in one object: no two
    readers agree on what that says.
    """
    said = text.decode()
    decoder = _EXACT_INTEGERS if _EXACT_INTEGER.search(said) else _EXACT
    return decoder.decode(said)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a key twice")
    return found


_EXACT = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=str.encode, parse_constant=str.encode
)
_EXACT_INTEGERS = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=str.encode,
    parse_float=str.encode,
    parse_constant=str.encode,
)


def _number(value: object) -> orjson.Fragment:
    """The text of a number, as `exact_value` keeps it."""
    if isinstance(value, bytes):
        return orjson.Fragment(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def canonical_value(value: object) -> bytes:
    """Canonical JSON of a parsed value; ValueError for what JSON cannot say."""
    try:
        return orjson.dumps(value, _number, orjson.OPT_SORT_KEYS)
    except TypeError as error:
        # Lone surrogates and integers beyond 64 bits are legal JSON that orjson refuses.
        try:
            text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        except TypeError:
            try:
                return orjson.dumps(_escaped(value), _number, orjson.OPT_SORT_KEYS)
            except TypeError:
                raise ValueError(str(error)) from error
        return text.encode("utf-8", "surrogatepass")


def _escaped(value: object) -> object:
    """The value with each text that has a lone surrogate as JSON text that escapes it."""
    match value:
        case str():
            return value if value.isascii() else orjson.Fragment(json.dumps(value))
        case dict():
            return {key: _escaped(each) for key, each in value.items()}
        case list():
            return [_escaped(each) for each in value]
    return value


def address(value: object) -> bytes:
    """A hash of a parsed value; the same, to all intents, iff the canonical JSON is."""
    return blake2b(canonical_value(value), digest_size=16).digest()
