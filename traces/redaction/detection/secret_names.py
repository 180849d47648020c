"""Whether a name is that of a secret: of a header, a parameter, an option or a variable.

A name is split into words at signs and capitals. What the last word says counts, as the value of
`password_policy` or `TOKEN_COUNT` is no secret.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from traces.redaction.detection.value_forms import is_plausible_secret, is_random_token

type NameStrength = Literal["sure", "likely", "maybe"]
"""`sure`: the value is a secret; `likely`: it is one if it may be one; `maybe`: if it is random."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-zß-ÿ]+|[^\W\d_]+")
_SURE_WORDS = (
    "password passwords passwd passwort passphrase passcode pwd pswd secret secrets apikey apikeys"
    " credential credentials kennwort contraseña contrasena senha wachtwoord hasło haslo parola"
    " пароль 密码 密碼 パスワード 비밀번호 accesstoken authtoken clientsecret apisecret"
)
_LIKELY_WORDS = (
    "pass pw pin otp totp auth authorization authentication bearer cred creds jwt dsn pat sig"
    " signature login pwrd token tokens"
)
_MAYBE_WORDS = (
    "api session sessionid sid ticket cookie cookies code key keys k assertion nonce csrf xsrf team"
)
_SURE, _LIKELY = frozenset(_SURE_WORDS.split()), frozenset(_LIKELY_WORDS.split())
_MAYBE = frozenset(_MAYBE_WORDS.split())
_LIKELY_ENDING = ("pass", "pw", "pwd", "token", "secret", "password", "apikey", "jwt")
_KEY_WORDS = (
    "api access secret private account signing encryption master subscription shared storage auth"
    " license admin deploy hmac webhook service consumer client"
)
_TOKEN_WORDS = (
    "access refresh auth id session bearer bot personal private security api user csrf xsrf deploy"
    " registration service account app client vault github gitlab slack"
)
_NO_KEY_WORDS = (
    "primary foreign sort partition cache idempotency public routing surrogate websocket page"
    " cursor continuation next row group object hash"
)
_KEY_BEFORE, _TOKEN_BEFORE = frozenset(_KEY_WORDS.split()), frozenset(_TOKEN_WORDS.split())
_NO_KEY_BEFORE = frozenset(_NO_KEY_WORDS.split())
_PAIRS = {"key": _KEY_BEFORE, "keys": _KEY_BEFORE, "token": _TOKEN_BEFORE, "tokens": _TOKEN_BEFORE}


def split_name(name: str) -> Iterator[str]:
    """Yield the words of a name in lower case: `X-dbPassword2` has `x`, `db`, `password`."""
    return (match[0].lower() for match in _WORD.finditer(name))


@lru_cache(4096)
def rate_name(name: str) -> NameStrength | None:
    """Return how surely the value of this name is a secret; None if nothing says that it is."""
    words = [*split_name(name)]
    if not words:
        return None
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _SURE or (last in _PAIRS and before in _PAIRS[last]):
        return "sure"
    if last in _PAIRS and before in _NO_KEY_BEFORE:
        return None
    if last in _LIKELY or (last not in _MAYBE and last.endswith(_LIKELY_ENDING)):
        return "likely"
    return "maybe" if last in _MAYBE else None


def is_secret_of(name: str, value: bytes) -> bool:
    """Return whether a value of this name is a secret, by both."""
    match rate_name(name):
        case "sure" | "likely":
            return is_plausible_secret(value)
        case "maybe":
            return is_random_token(value)
    return False


def mentions_secret(name: str) -> bool:
    """Return whether any word of a name is one for secrets: `X-Shop-Secret-Value`."""
    return any(word in _SURE or word in _LIKELY for word in split_name(name))
