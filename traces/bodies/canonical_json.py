"""Canonical JSON: one form for equal values, whatever their spacing, key order or escapes."""

import json
import re
from hashlib import blake2b

import orjson

_EXACT_INTEGER = re.compile(r"-0|\d{19}")
"""Matches text with an integer that int or float does not reproduce as written."""


def canonicalize_json(text: bytes | str) -> bytes:
    """Return a JSON text in canonical form, exact for integers of any size.

    Raises ValueError (json.JSONDecodeError) if the text is not JSON, or nested too deeply.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def parse_exact_json(text: bytes) -> object:
    """Parse a JSON text into a value that is equal only for texts of equal meaning.

    Spacing, key order and string escapes are dropped. A number with several forms (1.0 is not 1,
    1e400 is not null) becomes its text, as bytes. Raises ValueError if the text is not JSON in
    UTF-8, or if an object has a key twice: parsers disagree about its value.
    """
    decoded = text.decode()
    decoder = _EXACT_INTEGERS if _EXACT_INTEGER.search(decoded) else _EXACT
    return decoder.decode(decoded)


def _build_unique_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a key twice")
    return members


_EXACT = json.JSONDecoder(
    object_pairs_hook=_build_unique_object, parse_float=str.encode, parse_constant=str.encode
)
_EXACT_INTEGERS = json.JSONDecoder(
    object_pairs_hook=_build_unique_object,
    parse_int=str.encode,
    parse_float=str.encode,
    parse_constant=str.encode,
)


def _dump_exact_number(value: object) -> orjson.Fragment:
    """Return the text of a number as `parse_exact_json` stores it."""
    if isinstance(value, bytes):
        return orjson.Fragment(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def dump_canonical_json(value: object) -> bytes:
    """Return the canonical JSON of a parsed value; raise ValueError for an unencodable one."""
    try:
        return orjson.dumps(value, _dump_exact_number, orjson.OPT_SORT_KEYS)
    except TypeError as error:
        # Lone surrogates and integers beyond 64 bits are legal JSON that orjson refuses.
        try:
            text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        except TypeError:
            try:
                text = _spell_json(value)
            except TypeError:
                raise ValueError(str(error)) from error
        return text.encode("utf-8", "surrogatepass")


def _spell_json(value: object) -> str:
    """Return canonical JSON in which texts are escaped, keys too; bytes are numbers as written."""
    match value:
        case bytes():
            return value.decode()
        case dict():
            members = (f"{json.dumps(key)}:{_spell_json(value[key])}" for key in sorted(value))
            return f"{{{','.join(members)}}}"
        case list():
            return f"[{','.join(map(_spell_json, value))}]"
    return json.dumps(value)


def hash_json_value(value: object) -> bytes:
    """Hash a parsed value; in practice equal hashes mean equal canonical JSON."""
    return blake2b(dump_canonical_json(value), digest_size=16).digest()
