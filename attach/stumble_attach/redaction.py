"""Redaction of known secrets, credentials by position, and tokens by format.

Placeholders have the length of the secret and contain its class and number, as those of `stumble`
do. Known values are found plain, with the escapes of JSON and URLs, and in base64. In the chunks of
a stream a secret is found only within one chunk: `stumble scrub` searches across chunks.
"""

from __future__ import annotations

import gzip
import re
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from urllib.parse import unquote_to_bytes

from stumble_attach.token_formats import FORMATS

HeaderPairs = Sequence[tuple[str, str]]

MIN_SECRET_LENGTH = 8
_KEY_NAME = re.compile(r"(?i)(key|token|secret|passw|credential)")
_NOT_SECRET = re.compile(r"(?i)^(/|\d+$|true$|false$|none$)")
_AUTH = re.compile(
    r"(?i)(?:authorization|proxy-authorization|authentication|x-amz-security-token"
    r"|.*(?:api-?key|-key|-token|-secret|-password|-signature|-auth))\Z"
)
_NOT_AUTH = re.compile(
    r"(?i)(?:(?:x-)?idempotency|sec-websocket|surrogate|cache|partition|routing|sort)-key\Z"
)
_SCHEME = re.compile(r"(?i)(?:bearer|basic|digest|token|apikey|api-key|key|negotiate)\s+")
_COOKIE = re.compile(r"([^=;,\s]+\s*=\s*)([^;]*)")
_ATTRIBUTE = re.compile(r"(?i)(?:path|domain|expires|max-age|samesite|version)\s*=\s*\Z")
_URL_USER = re.compile(r"(?<=://)([^/?#@\s:]*:)?([^/?#@\s]+)@")
_PARAMETER = re.compile(
    r"(?i)([?&;#](?:[\w.-]*(?:api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret"
    r"|secret|password|signature|credential)|sig|key|token)=)([^&;#\s]+)"
)
_TOKEN_PATTERNS = tuple((kind, re.compile(pattern)) for _, kind, pattern in FORMATS)
_BEGINNING = re.compile(
    rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))(?:"
    + b"|".join(re.escape(begin) for begin, _, _ in FORMATS)
    + b")"
)
_ASSIGNMENT = rb"[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}"
_NAMED_SECRET = re.compile(
    rb"(?i:(?P<bearer>bearer )|(?:secret(?:_?access_?key)?|api[_-]?key|(?:(?:access|fresh|ssion)_?"
    rb"|\bid_)token)" + _ASSIGNMENT + rb")"
    rb"(?=[A-Za-z.~+/=_-]{0,64}\d)(?P<value>[\w.~+/=-]{20,4096})"
)
_PRIVATE_KEY_BLOCK = re.compile(
    rb"(?s)(?P<begin>-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----)(?P<value>.{16,16384}?)(?=-----END|\Z)"
)
_PLACEHOLDER = re.compile(rb"(?:REDACTED|RD)[a-z]\d+x*Z")


def find_env_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables named like keys, except paths, numbers and short ones."""
    return [
        value
        for name, value in environment.items()
        if _KEY_NAME.search(name)
        and len(value) >= MIN_SECRET_LENGTH
        and not _NOT_SECRET.match(value)
    ]


class SecretRedactor:
    """Replaces secrets; remembers those it has seen, in memory only."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._tags: dict[bytes, str] = {}
        self._counts: dict[str, int] = {}
        self._known: dict[bytes, re.Pattern[bytes]] = {}
        for value in sorted(set(known), key=lambda value: (-len(value), value)):
            secret = value.encode("utf-8", "surrogateescape")
            if len(secret) >= MIN_SECRET_LENGTH:
                self._known[secret] = _compile_spellings(secret)

    def redact_headers(self, headers: HeaderPairs) -> HeaderPairs:
        """Redact the credentials in header fields; schemes and cookie names stay."""
        redacted = [(name, self._redact_field(name.lower(), value)) for name, value in headers]
        return [(name, self.redact_url(value)) for name, value in redacted]

    def redact_url(self, url: str) -> str:
        """Redact the credentials of URLs in a text."""
        url = _URL_USER.sub(
            lambda found: (found[1] or "") + self._redact_credential(found[2]) + "@", url
        )
        url = _PARAMETER.sub(lambda found: found[1] + self._redact_credential(found[2]), url)
        return self.redact_bytes(url.encode("utf-8", "surrogateescape")).decode(
            "utf-8", "surrogateescape"
        )

    def redact_body(self, headers: HeaderPairs, body: bytes) -> bytes:
        """Redact the secrets in a body, and keep its content encoding.

        Raises ValueError for an encoding that cannot be decoded here: a body that cannot be
        searched is not written.
        """
        coding = next(
            (v.strip().lower() for n, v in headers if n.lower() == "content-encoding"), ""
        )
        if not body or coding in ("", "identity"):
            return self.redact_bytes(body)
        plain = _undo_content_encoding(coding, body)
        clean = self.redact_bytes(plain)
        if clean == plain:
            return body
        return gzip.compress(clean) if "gzip" in coding else zlib.compress(clean)

    def redact_bytes(self, data: bytes) -> bytes:
        """Replace each secret by a placeholder of the same length."""
        for value, pattern in self._known.items():
            data = pattern.sub(partial(self._replace_known, value), data)
        data = self._redact_tokens(data)
        data = _NAMED_SECRET.sub(
            lambda found: self._replace_labelled(found, "b" if found["bearer"] else "n"), data
        )
        return _PRIVATE_KEY_BLOCK.sub(lambda found: self._replace_labelled(found, "m"), data)

    def _replace_labelled(self, found: re.Match[bytes], kind: str) -> bytes:
        """Return the placeholder of a value that the text before it marks as a secret."""
        value, begins = found["value"], found.start("value") - found.start()
        if b"REDACTED" in value:
            return found[0]
        return found[0][:begins] + self._make_placeholder(value, len(value), kind)

    def _redact_field(self, name: str, value: str) -> str:
        if name in ("cookie", "set-cookie"):
            return _COOKIE.sub(self._redact_cookie, value)
        if not _AUTH.match(name) or _NOT_AUTH.match(name):
            return value
        scheme = _SCHEME.match(value)
        prefix = scheme[0] if scheme else ""
        return prefix + self._redact_credential(value[len(prefix) :])

    def _redact_cookie(self, found: re.Match[str]) -> str:
        if _ATTRIBUTE.match(found[1]) or not found[2]:
            return found[0]
        return found[1] + self._redact_credential(found[2])

    def _redact_credential(self, said: str) -> str:
        """Return the placeholder of a credential in a known position, and search for it from now
        on.
        """
        value = said.encode("utf-8", "surrogateescape")
        if _PLACEHOLDER.fullmatch(value):
            return said
        plain = unquote_to_bytes(value)
        self._remember_secret(plain)
        return self._make_placeholder(plain, len(value), has_tag=True).decode()

    def _replace_known(self, value: bytes, found: re.Match[bytes]) -> bytes:
        return self._make_placeholder(value, len(found[0]))

    def _redact_tokens(self, data: bytes) -> bytes:
        """Redact the tokens of a known format."""
        out, at = [], 0
        for candidate in _BEGINNING.finditer(data):
            matches = (
                (kind, look.match(data, candidate.start())) for kind, look in _TOKEN_PATTERNS
            )
            kind, match = next(((k, m) for k, m in matches if m), ("", None))
            if match is None or candidate.start() < at or b"REDACTED" in match[0]:
                continue
            start, stop = match.span(match.re.groups)
            out += [data[at:start], self._make_placeholder(data[start:stop], stop - start, kind)]
            at = stop
        return b"".join([*out, data[at:]])

    def _remember_secret(self, value: bytes) -> None:
        """Search for this value from now on, if it is distinct enough from plain words."""
        is_distinct = len(value) >= 20 or (
            len(value) >= MIN_SECRET_LENGTH and re.search(rb"\d", value)
        )
        if is_distinct and not value.isdigit() and not _PLACEHOLDER.fullmatch(value):
            self._known.setdefault(value, _compile_spellings(value))

    def _make_placeholder(
        self, value: bytes, length: int, kind: str | None = None, *, has_tag: bool = False
    ) -> bytes:
        """`has_tag`: longer than `length` if there is no room for a tag, so short values differ."""
        tag = self._tags.get(value)
        if tag is None:
            kind = kind or next((kind for kind, look in _TOKEN_PATTERNS if look.match(value)), "k")
            self._counts[kind] = self._counts.get(kind, 0) + 1
            tag = self._tags[value] = f"{kind}{self._counts[kind]}"
        if has_tag:
            length = max(length, len(f"RD{tag}Z"))
        for word in ("REDACTED", "RD", ""):
            rest = length - len(word) - len(tag) - 1
            if rest >= 0:
                return f"{word}{tag}{'x' * rest}Z".encode()
        return b"x" * length


def _compile_spellings(value: bytes) -> re.Pattern[bytes]:
    """Compile a pattern of all encodings of a value: each character plain or escaped, or base64."""
    escaped = b"".join(
        b"(?:%b|\\\\+u00%02x|\\\\+u00%02X|%%(?:25)*%02x|%%(?:25)*%02X%b)"
        % (re.escape(bytes((byte,))), byte, byte, byte, byte, rb"|\\+/" if byte == 47 else b"")
        for byte in value
    )
    cores = [
        b64encode(bytes(shift) + value)[(0, 2, 3)[shift] : 8 * (shift + len(value)) // 6]
        for shift in range(3)
    ]
    alternatives = [
        escaped,
        *map(re.escape, cores),
        *(re.escape(c.translate(_URL_SAFE_BASE64)) for c in cores),
    ]
    return re.compile(b"|".join(alternatives))


_URL_SAFE_BASE64 = bytes.maketrans(b"+/", b"-_")


def _undo_content_encoding(coding: str, body: bytes) -> bytes:
    try:
        if coding in ("gzip", "x-gzip"):
            return gzip.decompress(body)
        if coding == "deflate":
            return zlib.decompress(body)
    except gzip.BadGzipFile:
        if not body.startswith(b"\x1f\x8b"):
            return body  # the header is wrong: the body is not compressed
    except (EOFError, zlib.error):
        pass
    raise ValueError(f"content-encoding {coding} cannot be looked into here")
