"""Secrets in the words of a command: `--api-key V`, `--password=V`, `-u user:V`, `TOKEN=V`."""

import re
from collections.abc import Iterator, Sequence

from traces.lazy_pattern import compile_lazily
from traces.redaction.detection.assignments import MIN_VARIABLE_SECRET
from traces.redaction.detection.value_forms import is_plausible_secret, is_random_token

_NAME = (
    r"(?:[\w.-]*[_.-])?(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|pat|dsn"
    r"|(?:api|access|secret|private|auth|account|master|encryption|license|admin|service|signing"
    r"|subscription|storage|deploy|webhook|consumer|client)[_-]?key|apikey)"
)
_OPTION = compile_lazily(rf"(?i)--?{_NAME}\Z")
_JOINED = compile_lazily(rf"(?i)(?:--?|/)?{_NAME}[=:](.+)", re.DOTALL)
_OTHER_KEY = compile_lazily(r"(?i)--?[\w.-]+[_-]key(?:=(.+))?", re.DOTALL)
"""An option that may be any key: only a random value is a secret."""
_HEADER = compile_lazily(
    r"(?i)(?:(?:proxy-)?authorization|[\w-]*(?:api-?key|token|secret|auth))\s*:\s*"
    r"(?:(?:bearer|basic|token)\s+)?(.+)",
    re.DOTALL,
)
_USER = compile_lazily(r"[^:\s/]+:([^@\s]+)")
_NO_SECRET = compile_lazily(
    r"[-$<{%@/.~]|\d{1,7}\Z|(?i:true|false|none|null|auto|stdin|prompt|env)\Z"
)
MIN_COMMAND_SECRET = 4

type CommandSecretSpan = tuple[int, int, int]
"""Index of the word, and start and stop in it, in characters."""


def find_command_secrets(words: Sequence[str]) -> Iterator[CommandSecretSpan]:
    """Yield the secrets that names of options, headers and variables mark."""
    previous = ""
    for place, word in enumerate(words):
        joined = _JOINED.fullmatch(word) or _HEADER.fullmatch(word)
        user = _USER.fullmatch(word) if previous in ("-u", "--user") else None
        if _OPTION.match(previous):
            yield from _find_word_secret(place, word)
        elif match := joined or user:
            yield from _find_group_secret(place, match)
        elif (other := _OTHER_KEY.fullmatch(word)) and other[1] and _is_random_secret(other[1]):
            yield place, *other.span(1)
        elif _OTHER_KEY.fullmatch(previous) and _is_random_secret(word):
            yield place, 0, len(word)
        previous = word


def _find_word_secret(place: int, word: str) -> Iterator[CommandSecretSpan]:
    if _is_secret_value(word):
        yield place, 0, len(word)


def _find_group_secret(place: int, match: re.Match[str]) -> Iterator[CommandSecretSpan]:
    if _is_secret_value(match[1]):
        yield place, *match.span(1)


def _is_secret_value(text: str) -> bool:
    if len(text) < MIN_COMMAND_SECRET or _NO_SECRET.match(text):
        return False
    return " " not in text or is_plausible_secret(text.encode("utf-8", "surrogateescape"))


def _is_random_secret(text: str) -> bool:
    plain = text.encode("utf-8", "surrogateescape")
    return len(plain) >= MIN_VARIABLE_SECRET and is_random_token(plain)
