"""Credentials recognised by name: headers, cookies, URLs, forms, environment variables."""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from urllib.parse import unquote_to_bytes

from traces.lazy_pattern import compile_lazily
from traces.redaction.detection import patterns
from traces.redaction.detection.prefilter import find_possible_formats
from traces.redaction.detection.value_forms import is_plausible_secret, is_random_token

MIN_SECRET_LENGTH = 8
_KEY_NAME = compile_lazily(r"(?i)(key|token|secret|passw|credential)")
_MAYBE_NAME = compile_lazily(r"(?i)(?:\A|_)(?:pass(?:phrase)?|pwd|pat|auth|dsn|pin)\Z")
_NOT_SECRET = compile_lazily(r"(?i)^(/|\d+$|true$|false$|none$)")

AUTH_HEADER = compile_lazily(
    r"(?i)(?:authorization|proxy-authorization|authentication|x-amz-security-token"
    r"|.*(?:api-?key|-key|-token|-secret|-password|-signature|-auth))\Z"
)
_NOT_AUTH = compile_lazily(
    r"(?i)(?:.*-)?(?:idempotency|sec-websocket|surrogate|cache|partition|routing|sort)-key\Z"
)
_MAYBE_AUTH = compile_lazily(r"(?i)(?:.*-)?auth-.*|.*-(?:secret|password|api-?key|jwt|pat)(?:-.*)?")
AUTH_SCHEME = compile_lazily(
    r"(?i)(?:bearer|basic|digest|token|apikey|api-key|key|negotiate|aws4-hmac-sha256)\s+"
)
ONE_TIME_SCHEME = compile_lazily(r"(?i)(?:digest|aws4|negotiate)")
"""Schemes with a new value for each request, so searching it elsewhere is useless."""
COOKIE_PAIR = compile_lazily(r"([^=;,\s]+\s*=\s*)([^;]*)")
PROTOCOL_TOKEN = compile_lazily(r"[\w~+/=-]{16,}")
"""A part of an offered protocol that may be a token: `bearer, V`, `base64url.bearer.V`."""
_ATTRIBUTE = compile_lazily(r"(?i)(?:path|domain|expires|max-age|samesite|version)\s*=\s*\Z")
URL_USERINFO = compile_lazily(
    rb"(?:\A|(?<=[\s\"'<(=]))([a-z][a-z0-9+.-]{1,15}://)([^/?#@\s\"'<>]{1,512})@"
)
SECRET_PARAMETER = compile_lazily(
    rb"((?:\A|[?&;#])(?:(?P<sure>(?i:[\w.-]*(?:api[_-]?key|access[_-]?token|auth[_-]?token"
    rb"|refresh[_-]?token|id[_-]?token|session[_-]?token|security-token|client[_-]?secret"
    rb"|subscription-key|private[_-]token|secret|password|passwd|pwd|signature|credential)"
    rb"|sig|jwt))|(?P<maybe>(?i:key|token|auth|code|k)))=)([^&;#\s\"'<>]+)"
)


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
    return _MAYBE_NAME.search(name) is not None and is_plausible_secret(
        value.encode("utf-8", "replace")
    )


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
    if _MAYBE_AUTH.fullmatch(name) is None or len(value) < MIN_SECRET_LENGTH or " " in value:
        return False
    return is_plausible_secret(value.encode("latin-1"))


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
    value = match[4]
    return match["sure"] is not None or (len(value) >= 16 and is_random_token(value))
