"""A secret in every encoding in which a body can contain it."""

import base64
import json
from collections.abc import Callable, Mapping
from urllib.parse import quote, quote_plus


def _some(text: str, spell: Callable[[str], str], rest: Callable[[str], str]) -> str:
    return "".join((spell if place % 3 == 1 else rest)(char) for place, char in enumerate(text))


def _base64(text: str, shift: int, encode: Callable[[bytes], bytes] = base64.b64encode) -> str:
    return encode(b"?>~"[:shift] + text.encode() + b"~>").decode()


SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "json": lambda text: json.dumps(text)[1:-1],
    "json in json": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "json \\u": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "json \\U mixed": lambda text: _some(
        text, lambda char: f"\\u{ord(char):04X}", lambda char: json.dumps(char)[1:-1]
    ),
    "json \\/": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "json \\u in json": lambda text: "".join(f"\\\\u{ord(char):04x}" for char in text),
    "url": lambda text: quote(text, safe=""),
    "url plus": lambda text: quote_plus(text),
    "url lower": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "url mixed": lambda text: _some(
        text, lambda char: "".join(f"%{byte:02X}" for byte in char.encode()), quote
    ),
    "url twice": lambda text: quote(quote(text, safe=""), safe=""),
    "base64 0": lambda text: _base64(text, 0),
    "base64 1": lambda text: _base64(text, 1),
    "base64 2": lambda text: _base64(text, 2),
    "base64 0 url": lambda text: _base64(text, 0, base64.urlsafe_b64encode),
    "base64 1 url": lambda text: _base64(text, 1, base64.urlsafe_b64encode),
    "base64 2 url": lambda text: _base64(text, 2, base64.urlsafe_b64encode),
    "base64 without padding": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 in url": lambda text: quote(base64.b64encode(text.encode()).decode(), safe=""),
    "base64 in php": lambda text: base64.b64encode(text.encode()).decode().replace("/", "\\/"),
}
