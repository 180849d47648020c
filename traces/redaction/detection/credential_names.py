"""Credentials recognised by name: headers, cookies, URLs, forms, environment variables."""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, unquote_to_bytes

from traces.redaction.detection import patterns
from traces.redaction.detection.prefilter import find_possible_formats
from traces.redaction.detection.secret_names import is_secret_of, mentions_secret, rate_name
from traces.redaction.detection.value_forms import is_plausible_secret

MIN_SECRET_LENGTH = 8
MIN_UNSURE_LENGTH = 12
"""Of a value in a URL whose name may also be that of a page or a version."""
_KEY_NAME = re.compile(r"(?i)(key|token|secret|passw|credential)")
_NOT_SECRET = re.compile(r"(?i)^(/|\d+$|true$|false$|none$)")

AUTH_HEADER = re.compile(
    r"(?i)(?:authorization|proxy-authorization|authentication|x-amz-security-token"
    r"|.*(?:api-?key|-key|-token|-secret|-password|-signature|-auth))\Z"
)
_NOT_AUTH = re.compile(
    r"(?i)(?:.*-)?(?:idempotency|sec-websocket|surrogate|cache|partition|routing|sort)-key\Z"
)
AUTH_SCHEME = re.compile(
    r"(?i)(?:bearer|basic|digest|token|apikey|api-key|key|negotiate|aws4-hmac-sha256)\s+"
)
ONE_TIME_SCHEME = re.compile(r"(?i)(?:digest|aws4|negotiate)")
"""Schemes with a new value for each request, so searching it elsewhere is useless."""
COOKIE_PAIR = re.compile(r"([^=;,\s]+\s*=\s*)([^;]*)")
PROTOCOL_TOKEN = re.compile(r"[\w~+/=-]{16,}")
"""A part of an offered protocol that may be a token: `bearer, V`, `base64url.bearer.V`."""
_ATTRIBUTE = re.compile(r"(?i)(?:path|domain|expires|max-age|samesite|version)\s*=\s*\Z")
URL_USERINFO = re.compile(
    rb"(?:\A|(?<=[\s\"'<(=]))([a-z][a-z0-9+.-]{1,15}://)([^/?#@\s\"'<>]{1,512})@"
)
PARAMETER = re.compile(rb"((?:\A|[?&;#])([\w.%\[\]-]{1,64})=)([^&;#\s\"'<>]+)")


def find_environment_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables that are named like keys or look like one, longest first.

    Paths, numbers and values under 8 characters are excluded: replacing every `1` of a body because
    MAX_TOKENS is 1 would destroy the recording.
    """
    return tuple(sorted(map_secrets_to_names(environment), key=lambda value: (-len(value), value)))


def map_secrets_to_names(environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Map these values to their variable names, with a number for a part of a value."""
    names_by_secret = dict[str, tuple[str, ...]]()
    for name, value in sorted(environment.items()):
        for number, part in enumerate(_find_variable_secrets(name, value)):
            label = name if part == value else f"{name}#{number}"
            names_by_secret[part] = (*names_by_secret.get(part, ()), label)
    return names_by_secret


def _find_variable_secrets(name: str, value: str) -> list[str]:
    if is_named_secret(name, value):
        return [value]
    if len(value) < MIN_SECRET_LENGTH:
        return []
    data = value.encode("utf-8", "surrogateescape")
    parts = (
        data[start:stop]
        for start, stop, _ in patterns.find_pattern_secrets(
            data, patterns.extract_suspect_runs(data), find_possible_formats(data)
        )
    )
    return [
        part.decode("utf-8", "surrogateescape") for part in parts if is_distinctive_secret(part)
    ]


def is_named_secret(name: str, value: str) -> bool:
    """True for the value of a variable that is named like a key, unless it is a path or number."""
    if len(value) < MIN_SECRET_LENGTH or _NOT_SECRET.match(value):
        return False
    if _KEY_NAME.search(name):
        return True
    return is_secret_of(name, value.encode("utf-8", "replace"))


def is_distinctive_secret(value: bytes) -> bool:
    """True if a value seen on the wire is distinctive enough to search elsewhere.

    The password `postgres` is a secret in its place, but not wherever the word occurs.
    """
    if len(value) < MIN_SECRET_LENGTH or value.isdigit():
        return False
    return len(value) >= 20 or any(48 <= byte < 58 for byte in value)


def is_auth_header(name: str) -> bool:
    """True for a header whose complete value is a credential."""
    return AUTH_HEADER.match(name) is not None and _NOT_AUTH.match(name) is None


def can_be_auth_header(name: str, value: str) -> bool:
    """True for a header whose name mentions credentials and whose value looks like one."""
    scheme = AUTH_SCHEME.match(value)
    credential = value[scheme.end() :] if scheme else value
    if len(credential) < MIN_SECRET_LENGTH or " " in credential:
        return False
    data = credential.encode("latin-1")
    return is_secret_of(name, data) or (mentions_secret(name) and is_plausible_secret(data))


def parse_basic_auth(value: str) -> Iterator[bytes]:
    """Yield the secrets of an `Authorization: Basic` value: all of it; the password, else the user
    name."""
    try:
        plain = b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return
    user, _, password = plain.partition(b":")
    yield plain
    yield password or user


def parse_url_userinfo(user: bytes) -> bytes:
    """Return the secret in the user part of a URL: the password, else the name."""
    name, _, password = user.partition(b":")
    return unquote_to_bytes(password or name)


def is_cookie_attribute(start: str) -> bool:
    """True for `Path=` and other attributes of a Set-Cookie header."""
    return _ATTRIBUTE.match(start) is not None


def is_secret_parameter(match: "re.Match[bytes]") -> bool:
    """True for a parameter named like a credential, or with an ambiguous name and a token-like
    value."""
    name, value = unquote(match[2].decode("latin-1")), match[3]
    strength = rate_name(name)
    if strength in ("sure", "likely"):
        return strength == "sure" or not value.isdigit()
    return len(value) >= MIN_UNSURE_LENGTH and is_secret_of(name, value)
