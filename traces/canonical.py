"""One form for JSON that says the same thing, whatever its spacing, key order or escapes."""

import json
from hashlib import blake2b

import orjson


def canonical(text: bytes | str) -> bytes:
    """Canonical JSON of a JSON text, exact for integers of any size.

    ValueError (json.JSONDecodeError) where the text is no JSON.
    """
    value = json.loads(text)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def canonical_value(value: object) -> bytes:
    """Canonical JSON of a parsed value; ValueError for what JSON cannot say."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        # Lone surrogates and integers beyond 64 bits are legal JSON that orjson refuses.
        try:
            text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        except TypeError:
            raise ValueError(str(error)) from error
        return text.encode("utf-8", "surrogatepass")


def address(value: object) -> bytes:
    """A hash of a parsed value; the same, to all intents, iff the canonical JSON is."""
    return blake2b(canonical_value(value), digest_size=16).digest()
