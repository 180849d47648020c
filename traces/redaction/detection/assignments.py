"""Secrets assigned to a name: `"password": "..."`, `API_KEY=...`, `--token X`.

All such names end in one of five syllables. Their letters are mapped to three byte values, so one
pass finds every ending in any case, followed by a separator. The value must look like a secret:
`"password": "string"` is a schema and `password=get()` is code.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from traces.redaction.detection.neighbour_values import (
    REACH,
    begins_neighbour,
    find_neighbour_values,
)
from traces.redaction.detection.value_forms import (
    NO_VALUE,
    is_plausible_password,
    is_plausible_secret,
    is_random_token,
    is_spoken_password,
)

type AssignedSecretSpan = tuple[int, int, str]
"""Start, stop and class."""


def _build_symbol_table() -> bytes:
    table = bytearray(b"x" * 256)
    for letters, symbol in ((b"okprews", b"0"), (b"dtny", b"2"), (b"\"':=><\\- \r\n", b"S")):
        for byte in letters + letters.upper():
            table[byte] = symbol[0]
    return bytes(table)


_SYMBOLS, _ENDING = _build_symbol_table(), b"002S"
_SYLLABLES = frozenset((b"ord", b"swd", b"pwd", b"ret", b"ken", b"key"))
NAME_ENDING = rb"(?i)(?:ord|swd|pwd|ret|ken|key)[\"':=><\\\- \r\n]"
"""What ends a name of a secret, in four bytes."""
_BEFORE = 40
MAX_VALUE_LENGTH = 4096

# The words that name a secret: alone, before `token`, and before `key`.
PASSWORD_NAMES = b"password|passwd|pwd|secret"
TOKEN_NAMES = (
    b"access|refresh|auth|id|session|bearer|bot|personal|private|security|secret|api|user|csrf|xsrf|deploy"
    b"|registration|service|account|app|client|vault|github|gitlab|slack|jwt"
)
KEY_NAMES = (
    b"api|access|secret|private|account|signing|encryption|master|subscription|shared|storage|auth"
    b"|license|admin|deploy|hmac|webhook|service|consumer"
)


def _reverse_words(words: bytes) -> bytes:
    return b"|".join(word[::-1] for word in words.split(b"|"))


_NAME = re.compile(
    rb"(?:(?P<password>%b)|nekot(?:[_-]?(?:%b)|(?![a-z0-9_-])|(?=--(?![\w-])))|yek(?:[_-]?ssecca)?[_-]?(?:%b))"
    rb"(?:[a-z0-9_.]|-(?!-))*+(?P<flag>--)?"
    % (_reverse_words(PASSWORD_NAMES), _reverse_words(TOKEN_NAMES), _reverse_words(KEY_NAMES))
)
"""A name in lower case, read backwards."""
_NO_CREDENTIALS = (
    b"PRIMARY FOREIGN SORT PARTITION CACHE IDEMPOTENCY PUBLIC HASH ROW NEXT PREVIOUS PAGE CURSOR"
    b" CONTINUATION PAGINATION PAD EOS BOS UNK SEP CLS MASK STOP SYNC DEDUP ROUTING GROUP OBJECT"
)
_VARIABLE_NAME = re.compile(
    rb"(?:NEKOT|YEK)_(?!(?:%b)(?![A-Z0-9]))[A-Z0-9_]*[A-Z](?![A-Za-z0-9_])"
    % _reverse_words(_NO_CREDENTIALS)
)
"""A variable of the environment (`FAL_KEY`, `LINEAR_TOKEN`), read backwards."""
MIN_VARIABLE_SECRET = 12

_QUOTE = rb"\\{0,15}[\"'`]"
_QUOTES = rb"(?:" + _QUOTE + rb"){0,3}"
_BLANK = rb"(?:[^\S\r\n]|\\{1,15}t)"
"""No line end: what follows an empty value is no value."""
_IS = rb"(?:\\{0,15}[\"'])?\]?\s{0,4}(?::=|=>|[:=])(?:\s|\\{1,15}t){0,4}"
_QUOTED = re.compile(
    _IS + rb"[bfru]?(" + _QUOTE + rb")"
    rb"((?:(?!\1)[^\\\s]|\\{1,4}/|\\{1,4}u[0-9a-fA-F]{4}){6,4096}+)\1"
)
_BARE = re.compile(
    rb"(?:\\{0,15}[\"'])?\]?\s{0,4}(?:=" + _BLANK + rb"{0,4}|:" + _BLANK + rb"{1,4})"
    rb"((?:[^\s\"'`\\,;&<>(){}\[\]|$%*]|(?<=\w)[|$](?=\w)){6,4096}+)(?![(\[{]|\$\.\.)"
)
_RUN = re.compile(
    _QUOTES
    + rb"\s{0,4}(?:=|:(?=[\s\"'\\]))"
    + _BLANK
    + rb"{0,4}"
    + _QUOTES
    + rb"((?=[A-Za-z+/=._-]{0,64}\d)[\w+/=.-]{20,4096}+)"
)
_WORD = re.compile(
    _QUOTES
    + rb"(?:,\s{0,4}|"
    + _BLANK
    + rb"{1,4})"
    + _QUOTES
    + rb"([^\s\"'`\\,;&<>(){}\[\]|$%*]{6,4096}+)"
)
_SPACED = re.compile(rb" {1,2}(?:\d )?([A-Za-z0-9+/=-]{12,4096}+)(?![\w(\[{.])")
_ELEMENT = re.compile(rb">\s{0,4}([^\s<>\"'`\\]{6,4096}+)\s{0,4}<\\{0,15}/")
_LINE = rb"(?:\r?\n|\\{1,15}r\\{1,15}n|\\{1,15}n)"
_FIELD = re.compile(
    rb"\\{0,15}\"(?:;[^\r\n\\]{0,256})?(?:" + _LINE + rb"[\w-]{1,64}:[^\r\n\\]{0,256}){0,4}"
    + _LINE + _LINE + rb"([^\r\n\\]{4,4096})(?=" + _LINE + rb"--)"
)  # fmt: skip
_FIELD_NAME = re.compile(rb"name=\\{0,15}\"\Z")
_DASH = re.compile(rb"(?:\A|[\s\"'`])-\Z")
"""One dash before an option of PowerShell: `-Password V`."""
_PLAIN = re.compile(rb"[\w.~+/=:%@!#|-]+|[\w.~+/=:%@!#|$^&*()-]{32,}")
"""A value of a key or a token: long ones may hold any sign, as those that Django makes."""
_REFERENCE = re.compile(rb"[\w./-]+")
_VARIABLE = re.compile(rb"[a-z][\w./-]*[_./-](?:key|token|secret|password|passwd|pwd)")
_KEY_BLOCK = re.compile(
    rb"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----(?s:(.{16,16384}?))(?:-----END|\Z)"
)
_VALUE_BYTES = bytes(32 if byte in b" \t\r\n\"'`" else 97 for byte in range(256))
_OPEN = re.compile(
    rb"(?:(?:\\{0,15}[\"'])?\]?\s{0,4}(?::=|=>|[:=>])\s{0,4}[bfru]?[\"'`\\]{0,16}"
    rb"|[\"'\\]{0,16}(?:,\s{0,4}|\s{1,4}(?:\d )?)[\"'\\]{0,16})\Z"
)
_JOINED = re.compile(rb"(?i:passw(?:or)?d|pwd|secret|token|key)[:=>]")
_ADDRESS = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]{1,15}://(?P<value>[^/?#@\s\"'<>\\]{1,512})\Z")
_USER = re.compile(
    rb"[A-Za-z][A-Za-z0-9+.-]{1,15}://(?:([^/?#@\s\"'<>:\\]{0,256}):)?([^/?#@\s\"'<>:\\]{0,512})\Z"
)


def find_assigned_secrets(
    data: bytes, name_ends: Sequence[int] | None = None
) -> list[AssignedSecretSpan]:
    """Return the values assigned to secret names, and the contents of private key blocks.

    `name_ends` holds the offsets of all endings of names, in order, if they are known.
    """
    out, blocks = list[AssignedSecretSpan](), False
    for at in _iter_name_ends(data) if name_ends is None else name_ends:
        if data.startswith(b"PRIVATE KEY", at - 8):
            blocks = True
            continue
        name = _match_secret_name(data, at + 3)
        if name is None and not _ends_in_variable_name(data, at + 3):
            continue
        if span := _find_named_value(data, at + 3, name) or _find_value_beside(data, at + 3, name):
            out.append(span)
    if blocks:
        out += [(match.start(1), match.end(1), "m") for match in _KEY_BLOCK.finditer(data)]
    return out


def _iter_name_ends(data: bytes) -> Iterator[int]:
    """Yield the offsets of the last three letters of what may be names of secrets."""
    marks = data.translate(_SYMBOLS)
    at = marks.find(_ENDING)
    while at >= 0:
        if data[at : at + 3].lower() in _SYLLABLES:
            yield at
        at = marks.find(_ENDING, at + 3)


def find_url_passwords(data: bytes) -> list[AssignedSecretSpan]:
    """Return the passwords and tokens in the user parts of URLs that look like secrets."""
    out, at = list[AssignedSecretSpan](), data.find(b"@")
    while at >= 0:
        scheme = data.rfind(b"://", max(0, at - 800), at)
        if scheme >= 0 and (user := _USER.search(data[max(0, scheme - 16) : at])):
            name, value = user[1], user[2]
            if _is_lone_token(value) if name is None else _is_url_password(value):
                out.append((at - len(value), at, "k"))
            elif name is not None and _is_lone_token(name):
                stop = at - len(value) - 1
                out.append((stop - len(name), stop, "k"))
        at = data.find(b"@", at + 1)
    return out


def _is_url_password(value: bytes) -> bool:
    return len(value) >= 6 and is_plausible_secret(value)


def _is_lone_token(value: bytes) -> bool:
    return len(value) >= 20 and is_random_token(value)


def find_open_assignment(data: bytes) -> int:
    """Return the offset of an incomplete value at the end that a name or URL marks as secret."""
    tail = data[-MAX_VALUE_LENGTH:]
    start = _find_last_word(tail)
    starts = [len(tail)]
    if _ends_with_secret_name(tail[max(0, start - 80 - REACH) : start]):
        starts.append(start)
    elif (bracket := tail.rfind(b">", start) + 1) and _ends_with_secret_name(
        tail[max(0, bracket - 80 - REACH) : bracket]
    ):
        starts.append(bracket)
    elif match := _JOINED.search(tail, start):
        starts.append(match.end())
    if tail.find(b"://", start) >= 0 and (match := _ADDRESS.search(tail, start)):
        starts.append(match.start("value"))
    return len(data) - len(tail) + min(starts)


def _find_last_word(text: bytes) -> int:
    """Return the offset of the last run without spaces and quotes, at the end of the text."""
    size = 64
    while (at := text[-size:].translate(_VALUE_BYTES).rfind(b" ")) < 0 and size < len(text):
        size *= 8
    return max(0, len(text) - size) + at + 1


def _ends_with_secret_name(text: bytes) -> bool:
    """True if the text ends in the name of a secret and a separator."""
    marks = text.translate(_SYMBOLS)
    at, nearest = marks.rfind(_ENDING, max(0, len(text) - REACH)), max(0, len(text) - 28)
    while at >= 0:
        if text[at : at + 3].lower() in _SYLLABLES and (
            (at >= nearest and _OPEN.match(text, at + 3)) or begins_neighbour(text, at + 3)
        ):
            return _match_secret_name(text, at + 3) is not None or _ends_in_variable_name(
                text, at + 3
            )
        at = marks.rfind(_ENDING, max(0, len(text) - REACH), at)
    return False


def _match_secret_name(data: bytes, at: int) -> re.Match[bytes] | None:
    """Match the name of a secret that ends at `at`, backwards."""
    return _NAME.match(data[max(0, at - _BEFORE) : at].lower()[::-1])


def _find_named_value(
    data: bytes, at: int, name: re.Match[bytes] | None
) -> AssignedSecretSpan | None:
    """Return the value of the name that ends at `at`, if it looks like a secret; without a `name`
    it is a variable of the environment."""
    if name is None:
        return _find_variable_value(data, at)
    start = at - name.end()
    if data[start - 1 : start] == b"\\" and data[start : start + 1] in b"nrt":
        start += 1  # skip the letter of an escape
    is_flag = (
        name["flag"] is not None or _DASH.search(data, max(0, start - 1), start + 1) is not None
    )
    is_field = _FIELD_NAME.search(data[max(0, start - 24) : start]) is not None
    is_command = is_flag or data[start:at].isupper()
    for pattern, is_one in _iter_value_patterns(
        name, is_field=is_field, is_flag=is_flag, is_command=is_command
    ):
        match = pattern.match(data, at)
        if match and is_one(value := match[pattern.groups]) and b"REDACTED" not in value:
            if pattern is not _FIELD and _is_name_reference(value, name, data[start:at]):
                return None
            return (*match.span(pattern.groups), "n")
    return None


def _find_value_beside(
    data: bytes, at: int, name: re.Match[bytes] | None
) -> AssignedSecretSpan | None:
    """Return the value in a field beside the name that ends at `at`, if it looks like a secret;
    without a `name` it is a variable of the environment."""
    start, is_one = at, is_random_token
    if name is not None:
        start -= name.end()
        is_one = _is_beside_password if name["password"] else _is_quoted_secret
    for low, high in find_neighbour_values(data, start, at):
        value = data[low:high]
        if b"REDACTED" in value or NO_VALUE.fullmatch(value) or not is_one(value):
            continue
        if name is None or not _is_name_reference(value, name, data[start:at]):
            return low, high, "n"
    return None


def _find_variable_value(data: bytes, at: int) -> AssignedSecretSpan | None:
    """Return the value of an environment variable that ends at `at`, if it looks random."""
    for pattern in (_QUOTED, _BARE):
        match = pattern.match(data, at)
        if match and len(value := match[pattern.groups]) >= MIN_VARIABLE_SECRET:
            plain = _PLAIN.fullmatch(value) is not None and b"REDACTED" not in value
            if plain and is_random_token(value):
                return (*match.span(pattern.groups), "n")
    return None


def _ends_in_variable_name(data: bytes, at: int) -> bool:
    return _VARIABLE_NAME.match(data[max(0, at - _BEFORE) : at][::-1]) is not None


def _is_name_reference(value: bytes, name: re.Match[bytes], data: bytes) -> bool:
    """True for a value that repeats the name: `api_key=os.environ/API_KEY`, `password1`."""
    if _REFERENCE.fullmatch(value) is None:
        return False
    word, low = name[0][::-1].lstrip(b"-"), value.lower()
    if name["password"] and low.rstrip(b"0123456789") in (data.lower(), name["password"][::-1]):
        return True
    return _VARIABLE.fullmatch(low) is not None or (not name["password"] and word in low)


def _iter_value_patterns(
    name: re.Match[bytes], *, is_field: bool, is_flag: bool, is_command: bool
) -> Iterator[tuple[re.Pattern[bytes], Callable[[bytes], bool]]]:
    """Yield patterns for the text after a name, each with a check of the value."""
    if is_field:
        yield _FIELD, bool
    yield _ELEMENT, is_plausible_secret if name["password"] else is_random_token
    yield _QUOTED, is_plausible_password if name["password"] else _is_quoted_secret
    yield _BARE, is_plausible_password if is_command else _is_bare_secret
    if is_flag:
        yield _WORD, is_plausible_secret
    yield _RUN, _is_not_identifier
    yield _SPACED, is_random_token


def _is_bare_secret(value: bytes) -> bool:
    return is_random_token(value) or is_spoken_password(value)


def _is_quoted_secret(value: bytes) -> bool:
    if _PLAIN.fullmatch(value) is None:
        return False
    return is_random_token(value) or (len(value) >= 16 and is_plausible_secret(value))


def _is_beside_password(value: bytes) -> bool:
    is_name = b"passw" in value.lower()
    return not is_name and _PLAIN.fullmatch(value) is not None and is_plausible_password(value)


def _is_not_identifier(value: bytes) -> bool:
    return NO_VALUE.fullmatch(value) is None
