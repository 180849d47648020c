"""Secrets in places of known form: a statement, a line of a file, a login, a hash, an environment.

Each place is a beginning, the value, and what has to follow it; the value must look like a secret.
Beginnings are rare in other text, and the prefilter knows them, so that the patterns run on almost
no text.
"""

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from traces.redaction.detection.value_forms import (
    is_plausible_password,
    is_random_token,
)

LONGEST_PLACED = 16_384
_BEGINNING = 320
"""Bytes before a value in which its place begins."""
_QUOTE = rb"\\{0,15}[\"'`]"
_SPACE = rb"(?:[ \t\r\n]|\\{1,15}[nrt])"
_TEXT = rb"[^\s\"'`\\]"

type PlacedSecretSpan = tuple[int, int, str]
"""Start, stop and class."""


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """A place of secrets: its beginning, one character of the value, bounds, and the rest."""

    beginning: bytes
    character: bytes
    shortest: int
    is_secret: Callable[[bytes], bool]
    after: bytes = b""
    kind: str = "n"
    sign: bytes = b""
    """What the prefilter searches; the beginning if empty."""

    @property
    def pattern(self) -> bytes:
        """The pattern of the place; its group is the value."""
        return b"%b(%b{%d,%d}+={0,2})%b" % (
            self.beginning, self.character, self.shortest, LONGEST_PLACED, self.after
        )  # fmt: skip

    @property
    def open_pattern(self) -> bytes:
        """The pattern of a place at the end of a text, which may continue."""
        return b"%b(%b{0,%d}+={0,2})\\Z" % (self.beginning, self.character, LONGEST_PLACED)


def _is_hash(value: bytes) -> bool:
    return len(set(value)) >= 10 and (value.lower() != value or value.upper() != value)


def _is_signature(value: bytes) -> bool:
    plain = unquote_to_bytes(value)
    return len(plain) >= 16 and is_random_token(plain.rstrip(b"="))


def is_encoded_login(value: bytes) -> bool:
    """True for base64 of a user's name, a colon and a password."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return False
    return bool(colon and password) and (user + password).isprintable()


def _is_encoded_key_block(value: bytes) -> bool:
    head = base64.b64decode(value[:64] + b"=" * (-len(value[:64]) % 4))
    return b"PRIVATE KEY" in head


_NAME_PART = rb"(?:[\w.-]{0,40}[_.-])?"
PLACES = (
    # SQL, PowerShell: `CREATE USER joe PASSWORD 'V'`, `ConvertTo-SecureString "V"`.
    SecretPlace(
        rb"(?i:password|identified" + _SPACE + rb"{1,4}(?:with" + _SPACE + rb"{1,4}[\w\"'`]{1,40}"
        + _SPACE + rb"{1,4})?(?:by|as)|securestring(?:" + _SPACE + rb"{1,4}-string)?)"
        + _SPACE + rb"{1,4}" + _QUOTE,
        _TEXT, 6, is_plausible_password, _QUOTE,
    ),
    # Settings of Redis, and lines of a netrc.
    SecretPlace(
        rb"(?:requirepass|masterauth|login" + _SPACE + rb"{1,4}" + _TEXT + rb"{1,128}" + _SPACE
        + rb"{1,4}password)" + _SPACE + rb"{1,4}" + rb"(?:" + _QUOTE + rb")?",
        _TEXT, 6, is_plausible_password,
    ),
    # Signed URLs.
    SecretPlace(
        rb"(?i:[?&;](?:[\w.-]{0,40}signature|sig)=)", rb"[\w%+/.~-]", 16, _is_signature, kind="k",
        sign=rb"(?i)[?&;](?:[\w.-]*signature|sig)=[\w%+/.~-]{16}",
    ),
    # Logins of curl and mysql.
    SecretPlace(
        rb"curl\b[^\r\n]{0,120}?[ \"'](?:-u|--user|--proxy-user)(?:[ =]{1,2}|" + _QUOTE
        + rb"," + _SPACE + rb"{0,2})(?:" + _QUOTE + rb")?[\w.@+%-]{1,64}:",
        _TEXT, 6, is_plausible_password, kind="k",
        sign=rb"curl\b[^\r\n]*[ \"'](?:-u|--user|--proxy-user)",
    ),
    SecretPlace(
        rb"mysql(?:dump|admin|import|show)?\b[^\r\n]{0,120}?[ \"']-p", _TEXT, 6,
        is_plausible_password, sign=rb"mysql(?:dump|admin|import|show)?\b[^\r\n]*[ \"']-p\S",
    ),
    # Lines of a pgpass file: host, port, database, user, password.
    SecretPlace(
        rb"(?:(?<![\w.*:/-])|(?<=\\n))[\w*][\w.*-]{0,64}:(?:\d{2,5}|\*):[\w*-]{1,64}"
        rb":[\w.*@-]{1,64}:",
        rb"[^\s\"'`\\:]", 6, is_plausible_password, rb"(?![^\s\"'`\\])",
        sign=rb"[\w*]:(?:\d{2,5}|\*):[\w*-]+:[\w.*@-]+:[^\s:]{6}",
    ),
    # Hashes of passwords: crypt(5), Django, LDAP, PostgreSQL.
    SecretPlace(
        rb"(?:\$(?:1|2[abxy]?|5|6|7|y|gy|md5|apr1|argon2(?:id|i|d)|scrypt)\$"
        rb"(?:[\w=,./+-]{1,40}\$){0,3}|pbkdf2_sha\d{1,3}\$\d{1,8}\$[\w./+-]{1,64}\$"
        rb"|\{(?:S?SHA(?:256|512)?|S?MD5|CRYPT)\}|SCRAM-SHA-256\$\d{1,8}:[\w+/=]{8,64}\$)",
        rb"[\w./+]", 20, _is_hash, rb"(?![\w./+-])", "k",
        sign=rb"\$(?:1|2[abxy]?|5|6|7|y|gy|md5|apr1|argon2(?:id|i|d)|scrypt)\$[\w=,./$+-]{20}"
        rb"|pbkdf2_sha\d+\$|\{(?:S?SHA(?:256|512)?|S?MD5|CRYPT)\}[\w./+]{20}|SCRAM-SHA-256\$",
    ),
    SecretPlace(
        rb"SCRAM-SHA-256\$\d{1,8}:[\w+/=]{8,64}\$[\w+/=]{20,64}:", rb"[\w+/]", 20, _is_hash,
        kind="k", sign=rb"SCRAM-SHA-256\$",
    ),
    # A login in base64 (Docker), and a key block in base64 (Kubernetes).
    SecretPlace(
        rb"(?i:\"auth\\{0,15}\")" + _SPACE + rb"{0,4}:" + _SPACE + rb"{0,4}" + _QUOTE,
        rb"[A-Za-z0-9+/]", 8, is_encoded_login, _QUOTE, "k",
    ),
    SecretPlace(
        rb"(?=LS0tLS1CRUdJTi)", rb"[A-Za-z0-9+/]", 64, _is_encoded_key_block, kind="m",
        sign=rb"LS0tLS1CRUdJTi",
    ),
    # Names that end otherwise than those of assignments: `"pass": "V"`, `MYSQL_PASS=V`.
    SecretPlace(
        rb"(?<![\w.-])(?i:" + _NAME_PART + rb"(?:pass|passphrase|passcode))(?:" + _QUOTE + rb")?"
        + _SPACE + rb"{0,4}(?:=>|[:=])" + _SPACE + rb"{0,4}" + _QUOTE,
        _TEXT, 6, is_plausible_password, _QUOTE,
        sign=rb"(?i)pass(?:phrase|code)?[\\\"'`\snrt]*(?:=>|[:=])[\\\"'`\snrt]*"
        rb"\S*[0-9!@#$%^&*?~]",
    ),
    SecretPlace(
        rb"(?<![A-Za-z0-9_-])[A-Z0-9_]{0,40}(?:_PASS|PASSPHRASE|_CREDENTIALS?|_PAT|_DSN)=(?:"
        + _QUOTE + rb")?",
        _TEXT, 8, is_plausible_password,
        sign=rb"(?:_PASS|PASSPHRASE|_CREDENTIALS?|_PAT|_DSN)=[\\\"'`]*\S{6}",
    ),
)  # fmt: skip
_PATTERNS = tuple((re.compile(place.pattern), place) for place in PLACES)
_OPEN_PATTERNS = tuple(re.compile(place.open_pattern) for place in PLACES)

_ENVIRONMENT = rb"\"env(?:ironment|_vars|Vars)?\\{0,15}\"" + _SPACE + rb"{0,4}:" + _SPACE
_ENVIRONMENT_BLOCK = re.compile(_ENVIRONMENT + rb"{0,4}\{([^{}]{1,16384})")
"""The variables of a program, as in the settings of MCP servers."""
_VALUE = re.compile(rb"\"([\w.~+/=-]{16,4096}+)\\{0,15}\"")
_VARIABLE_NAME = re.compile(
    rb"\"(?![\w-]*(?i:sha|id|hash|digest|version|commit|path|url|uri|host|ref|rev|name|dir|home)"
    rb"\\{0,15}\")[A-Za-z_]\w{0,64}\\{0,15}\"" + _SPACE + rb"{0,4}:" + _SPACE
    + rb"{0,4}\\{0,15}\Z"
)  # fmt: skip
_LONGEST_NAME = 180
_OPEN_VARIABLE = re.compile(
    rb"[{,]" + _SPACE + rb"{0,16}\\{0,15}\"[A-Za-z_]\w{0,64}\\{0,15}\"" + _SPACE + rb"{0,4}:"
    + _SPACE + rb"{0,4}\\{0,15}\"([\w.~+/=-]{0,4096}+)\Z"
)  # fmt: skip


def list_place_signs() -> Iterator[bytes]:
    """Yield a pattern for each place, the last one for environments, that matches wherever a
    secret is found there."""
    for place in PLACES:
        yield place.sign or place.beginning
    yield _ENVIRONMENT + rb"*\{"


PLACE_COUNT = len(PLACES) + 1


def find_placed_secrets(data: bytes, possible: int) -> list[PlacedSecretSpan]:
    """Return the values in such places that look like secrets.

    Bit K of `possible` is set if the sign of place K may be in the data; the others are not
    searched.
    """
    out = list[PlacedSecretSpan]()
    for number, (pattern, place) in enumerate(_PATTERNS):
        if not possible >> number & 1:
            continue
        for match in pattern.finditer(data):
            value = match[1]
            if b"REDACTED" not in value and place.is_secret(value):
                out.append((*match.span(1), place.kind))
    if possible >> len(PLACES) & 1:
        out += _find_environment_secrets(data)
    return out


def _find_environment_secrets(data: bytes) -> list[PlacedSecretSpan]:
    out = list[PlacedSecretSpan]()
    for block in _ENVIRONMENT_BLOCK.finditer(data):
        begin, stop = block.span(1)
        for match in _VALUE.finditer(data, begin, stop):
            name = data[max(begin, match.start() - _LONGEST_NAME) : match.start()]
            if (
                is_random_token(match[1])
                and _VARIABLE_NAME.search(name)
                and b"REDACTED" not in match[1]
            ):
                out.append((*match.span(1), "n"))
    return out


def find_open_place(data: bytes) -> int:
    """Return the offset of an incomplete value at the end; len(data) if there is none."""
    tail = data[-LONGEST_PLACED - _BEGINNING :]
    starts = [match.start(1) for each in _OPEN_PATTERNS if (match := each.search(tail))]
    if _ENVIRONMENT_BLOCK.search(tail) and (match := _OPEN_VARIABLE.search(tail)):
        starts.append(match.start(1))
    return len(data) - len(tail) + min(starts, default=len(tail))
