"""Secrets in the words of a command: `--api-key V`, `--password=V`, `-u user:V`, `TOKEN=V`."""

import re
from collections.abc import Iterator, Sequence

from traces.redaction.detection.assignments import MIN_VARIABLE_SECRET
from traces.redaction.detection.secret_names import rate_name
from traces.redaction.detection.value_forms import is_plausible_secret, is_random_token

_OPTION = re.compile(r"--?([\w.-]+)")
_ASSIGNED = re.compile(r"(?:--?|/)?([\w.-]{1,64})[=:](.+)", re.DOTALL)
_HEADER = re.compile(
    r"([\w-]{1,64})\s*:\s+(?:(?:bearer|basic|token)\s+)?(.+)", re.DOTALL | re.IGNORECASE
)
_LOGIN = re.compile(r"[^:\s/]{1,64}:([^@\s]+)")
"""A user and a password."""
_LOGIN_NAMES = ("u", "user", "auth", "login", "cred", "creds", "credential", "credentials")
_NO_SECRET = re.compile(r"[-$<{%@/.~]|\d{1,7}\Z|(?i:true|false|none|null|auto|stdin|prompt|env)\Z")
MIN_COMMAND_SECRET = 4

type CommandSecretSpan = tuple[int, int, int]
"""Index of the word, and start and stop in it, in characters."""


def find_command_secrets(words: Sequence[str]) -> Iterator[CommandSecretSpan]:
    """Yield the secrets that names of options, headers and variables mark."""
    previous = ""
    for place, word in enumerate(words):
        option = _OPTION.fullmatch(previous)
        named = _HEADER.fullmatch(word) or _ASSIGNED.fullmatch(word)
        if option and (start := _find_secret(option[1], word)) is not None:
            yield place, start, len(word)
        elif named and (start := _find_secret(named[1], named[2])) is not None:
            yield place, named.start(2) + start, len(word)
        previous = word


def _find_secret(name: str, text: str) -> int | None:
    """Return where in the text of this name a secret begins; None if it is none."""
    if name.lower() in _LOGIN_NAMES and (login := _LOGIN.fullmatch(text)):
        return login.start(1) if _can_be_secret(login[1]) else None
    if not _can_be_secret(text):
        return None
    plain = text.encode("utf-8", "surrogateescape")
    match rate_name(name):
        case "sure":
            is_secret = " " not in text or is_plausible_secret(plain)
        case "likely":
            is_secret = is_plausible_secret(plain)
        case "maybe":
            is_secret = len(plain) >= MIN_VARIABLE_SECRET and is_random_token(plain)
        case None:
            return None
    return 0 if is_secret else None


def _can_be_secret(text: str) -> bool:
    return len(text) >= MIN_COMMAND_SECRET and _NO_SECRET.match(text) is None
