"""Where credentials stand by name: headers, cookies, URLs, forms, the environment."""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from urllib.parse import unquote_to_bytes

SHORTEST = 8
_KEY_NAME = re.compile(r"(?i)(key|token|secret|passw|credential)")
_NOT_SECRET = re.compile(r"(?i)^(/|\d+$|true$|false$|none$)")

AUTH = re.compile(
    r"(?i)(?:authorization|proxy-authorization|authentication|x-amz-security-token"
    r"|.*(?:api-?key|-key|-token|-secret|-password|-signature|-auth))\Z"
)
_NOT_AUTH = re.compile(
    r"(?i)(?:(?:x-)?idempotency|sec-websocket|surrogate|cache|partition|routing|sort)-key\Z"
)
SCHEME = re.compile(
    r"(?i)(?:bearer|basic|digest|token|apikey|api-key|key|negotiate|aws4-hmac-sha256)\s+"
)
ONE_TIME = re.compile(r"(?i)(?:digest|aws4|negotiate)")
"""Schemes whose value is made anew for each request: nothing to look for elsewhere."""
COOKIE = re.compile(r"([^=;,\s]+\s*=\s*)([^;]*)")
_ATTRIBUTE = re.compile(r"(?i)(?:path|domain|expires|max-age|samesite|version)\s*=\s*\Z")
USER = re.compile(rb"(?:\A|(?<=[\s\"'<(=]))([a-z][a-z0-9+.-]{1,15}://)([^/?#@\s\"'<>]{1,512})@")
PARAMETER = re.compile(
    rb"((?:\A|[?&;#])(?:(?P<sure>(?i:[\w.-]*(?:api[_-]?key|access[_-]?token|auth[_-]?token"
    rb"|refresh[_-]?token|id[_-]?token|session[_-]?token|security-token|client[_-]?secret"
    rb"|subscription-key|private[_-]token|secret|password|passwd|pwd|signature|credential)"
    rb"|sig|jwt))|(?P<maybe>(?i:key|token|auth|code|k)))=)([^&;#\s\"'<>]+)"
)


def secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables that are named like keys, longest first.

    Paths, numbers and values under 8 characters are left alone: replacing every `1` of a body
    because MAX_TOKENS is 1 would destroy the recording.
    """
    found = {
        value
        for name, value in environment.items()
        if _KEY_NAME.search(name) and len(value) >= SHORTEST and not _NOT_SECRET.match(value)
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def telling(value: bytes) -> bool:
    """True if a value seen on the wire is worth looking for elsewhere.

    A password `postgres` is a secret where it stands, but not wherever the word is used.
    """
    if len(value) < SHORTEST or value.isdigit():
        return False
    return len(value) >= 20 or any(48 <= byte < 58 for byte in value)


def is_auth(name: str) -> bool:
    """True for a header whose whole value is a credential."""
    return AUTH.match(name) is not None and _NOT_AUTH.match(name) is None


def in_basic(value: str) -> Iterator[bytes]:
    """The secret in the value of `Authorization: Basic`: the password, else the user name."""
    try:
        plain = b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return
    user, _, password = plain.partition(b":")
    yield plain
    yield password or user


def in_user(user: bytes) -> bytes:
    """The secret in the user part of a URL: the password, else the name."""
    name, _, password = user.partition(b":")
    return unquote_to_bytes(password or name)


def is_attribute(start: str) -> bool:
    """True for `Path=` and its like in a Set-Cookie header."""
    return _ATTRIBUTE.match(start) is not None


def is_secret(match: "re.Match[bytes]") -> bool:
    """True for a parameter that is named like a credential, or just might be and looks it."""
    value = match[4]
    return match["sure"] is not None or (len(value) >= 16 and re.search(rb"\d", value) is not None)
