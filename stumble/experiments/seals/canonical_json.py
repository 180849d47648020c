"""Canonical JSON: equal values have the same text, and so the same digest.

Keys are sorted, there is no whitespace, and an integral number is written without a fraction, as in
RFC 8785; text is kept as it is, code point by code point.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence

_LARGEST_EXACT_FLOAT = 2.0**53
"""The limit below which every integer has an exact float."""


def to_canonical_json(value: object) -> str:
    """Return the canonical text of plain data. Raises ValueError if JSON cannot represent it."""
    return json.dumps(
        _normalize_json(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )


def hash_canonical_json(value: object) -> str:
    """Return the SHA-256 of the canonical text as 64 hex digits."""
    return hashlib.sha256(to_canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def _normalize_json(value: object) -> object:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{value!r} has no place in a canonical text")
            return int(value) if value.is_integer() and abs(value) < _LARGEST_EXACT_FLOAT else value
        case Mapping():
            if not all(isinstance(key, str) for key in value):
                raise ValueError(f"keys have to be text: {sorted(map(repr, value))}")
            return {key: _normalize_json(each) for key, each in value.items()}
        case Sequence() if not isinstance(value, bytes | bytearray):
            return [_normalize_json(each) for each in value]
    raise ValueError(f"{type(value).__name__} has no place in a canonical text")
