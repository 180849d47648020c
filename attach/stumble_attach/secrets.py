"""What must not be written: values of variables named like keys, credentials, and their looks.

Placeholders have the length of the secret and say its class and its number, as those of `stumble`
do. Known values are found plain, with the escapes of JSON and URLs, and in base64. What a stream
brings in pieces is only found where no piece cuts it: `stumble scrub` looks closer.
"""

from __future__ import annotations

import gzip
import re
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from urllib.parse import unquote_to_bytes

Headers = Sequence[tuple[str, str]]

SHORTEST = 8
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
_USER = re.compile(r"(?<=://)([^/?#@\s:]*:)?([^/?#@\s]+)@")
_PARAMETER = re.compile(
    r"(?i)([?&;#](?:[\w.-]*(?:api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret"
    r"|secret|password|signature|credential)|sig|key|token)=)([^&;#\s]+)"
)
_LOOKS = (
    ("a", rb"sk-ant-[\w-]{16,512}"),
    ("o", rb"sk-(?=[\w-]{0,64}\d)[\w-]{17,512}"),
    ("s", rb"xox[a-z]-(?=[A-Za-z-]{0,64}\d)[A-Za-z0-9-]{15,255}"),
    ("g", rb"gh[pousr]_[A-Za-z0-9]{20,255}"),
    ("g", rb"github_pat_\w{20,255}"),
    ("w", rb"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("i", rb"AIza[\w-]{35}"),
    ("j", rb"eyJ[\w-]{8,8192}\.eyJ[\w-]{2,8192}\.[\w-]{0,8192}"),
)
_LOOK = re.compile(
    rb"(?<![A-Za-z0-9])(?:" + b"|".join(b"(%b)" % look for _, look in _LOOKS) + rb")"
)
_IS = rb"[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}"
_NAMED = re.compile(
    rb"(?i:(?P<bearer>bearer )|(?:secret(?:_?access_?key)?|api[_-]?key|(?:(?:access|fresh|ssion)_?"
    rb"|\bid_)token)" + _IS + rb")"
    rb"(?(bearer)(?=[\w.~+/=-]{20})|(?=[A-Za-z+/=._-]{0,64}\d))(?P<value>[\w.~+/=-]{20,4096})"
)
_BLOCK = re.compile(
    rb"(?s)(?P<begin>-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----)(?P<value>.{16,16384}?)(?=-----END|\Z)"
)
_PLACEHOLDER = re.compile(rb"(?:REDACTED|RD)[a-z]\d+x*Z")


def of_environment(environment: Mapping[str, str]) -> list[str]:
    """The values of variables that are named like keys; paths, numbers and short ones are not."""
    return [
        value
        for name, value in environment.items()
        if _KEY_NAME.search(name) and len(value) >= SHORTEST and not _NOT_SECRET.match(value)
    ]


class Secrets:
    """Replaces what must not be written; remembers, in memory only, what it has seen."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._tags: dict[bytes, str] = {}
        self._counts: dict[str, int] = {}
        self._known: dict[bytes, re.Pattern[bytes]] = {}
        for value in sorted(set(known), key=lambda value: (-len(value), value)):
            secret = value.encode("utf-8", "surrogateescape")
            if len(secret) >= SHORTEST:
                self._known[secret] = _spelled(secret)

    def headers(self, headers: Headers) -> Headers:
        """Header fields without credentials; scheme words and names of cookies stay."""
        named = [(name, self._field(name.lower(), value)) for name, value in headers]
        return [(name, self.url(value)) for name, value in named]

    def url(self, url: str) -> str:
        """A text with URLs in it, without their credentials."""
        url = _USER.sub(lambda found: (found[1] or "") + self._named(found[2]) + "@", url)
        url = _PARAMETER.sub(lambda found: found[1] + self._named(found[2]), url)
        return self.text(url.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def body(self, headers: Headers, body: bytes) -> bytes:
        """A body without secrets, encoded as it was.

        ValueError for an encoding that cannot be undone here: what nobody can look into is not
        written.
        """
        coding = next(
            (v.strip().lower() for n, v in headers if n.lower() == "content-encoding"), ""
        )
        if not body or coding in ("", "identity"):
            return self.text(body)
        plain = _decoded(coding, body)
        clean = self.text(plain)
        if clean == plain:
            return body
        return gzip.compress(clean) if "gzip" in coding else zlib.compress(clean)

    def text(self, data: bytes) -> bytes:
        """The data with each secret replaced by text of its length."""
        for value, pattern in self._known.items():
            data = pattern.sub(partial(self._standing, value), data)
        data = _LOOK.sub(self._looks, data)
        data = _NAMED.sub(lambda found: self._after(found, "b" if found["bearer"] else "n"), data)
        return _BLOCK.sub(lambda found: self._after(found, "m"), data)

    def _after(self, found: re.Match[bytes], kind: str) -> bytes:
        """What stands for a value that words before it say is a secret."""
        value, begins = found["value"], found.start("value") - found.start()
        if b"REDACTED" in value:
            return found[0]
        return found[0][:begins] + self._instead(value, len(value), kind)

    def _field(self, name: str, value: str) -> str:
        if name in ("cookie", "set-cookie"):
            return _COOKIE.sub(self._cookie, value)
        if not _AUTH.match(name) or _NOT_AUTH.match(name):
            return value
        scheme = _SCHEME.match(value)
        kept = scheme[0] if scheme else ""
        return kept + self._named(value[len(kept) :])

    def _cookie(self, found: re.Match[str]) -> str:
        if _ATTRIBUTE.match(found[1]) or not found[2]:
            return found[0]
        return found[1] + self._named(found[2])

    def _named(self, said: str) -> str:
        """What stands for a value that is a credential by its place, and is looked for from now."""
        value = said.encode("utf-8", "surrogateescape")
        if _PLACEHOLDER.fullmatch(value):
            return said
        plain = unquote_to_bytes(value)
        self._learn(plain)
        return self._instead(plain, len(value)).decode()

    def _standing(self, value: bytes, found: re.Match[bytes]) -> bytes:
        return self._instead(value, len(found[0]))

    def _looks(self, found: re.Match[bytes]) -> bytes:
        kind = _LOOKS[(found.lastindex or 1) - 1][0]
        return self._instead(found[0], len(found[0]), kind)

    def _learn(self, value: bytes) -> None:
        """Look for this value from now on, if it can be told from plain words."""
        told = len(value) >= 20 or (len(value) >= SHORTEST and re.search(rb"\d", value))
        if told and not value.isdigit() and not _PLACEHOLDER.fullmatch(value):
            self._known.setdefault(value, _spelled(value))

    def _instead(self, value: bytes, length: int, kind: str | None = None) -> bytes:
        tag = self._tags.get(value)
        if tag is None:
            look = _LOOK.match(value)
            kind = kind or (_LOOKS[(look.lastindex or 1) - 1][0] if look else "k")
            self._counts[kind] = self._counts.get(kind, 0) + 1
            tag = self._tags[value] = f"{kind}{self._counts[kind]}"
        for word in ("REDACTED", "RD", ""):
            rest = length - len(word) - len(tag) - 1
            if rest >= 0:
                return f"{word}{tag}{'x' * rest}Z".encode()
        return b"x" * length


def _spelled(value: bytes) -> re.Pattern[bytes]:
    """All that a value looks like: each character plain or escaped, or all of it in base64."""
    escaped = b"".join(
        b"(?:%b|\\\\+u00%02x|\\\\+u00%02X|%%(?:25)*%02x|%%(?:25)*%02X%b)"
        % (re.escape(bytes((byte,))), byte, byte, byte, byte, rb"|\\+/" if byte == 47 else b"")
        for byte in value
    )
    cores = [
        b64encode(bytes(shift) + value)[(0, 2, 3)[shift] : 8 * (shift + len(value)) // 6]
        for shift in range(3)
    ]
    every = [escaped, *map(re.escape, cores), *(re.escape(c.translate(_SAFE)) for c in cores)]
    return re.compile(b"|".join(every))


_SAFE = bytes.maketrans(b"+/", b"-_")


def _decoded(coding: str, body: bytes) -> bytes:
    try:
        if coding in ("gzip", "x-gzip"):
            return gzip.decompress(body)
        if coding == "deflate":
            return zlib.decompress(body)
    except gzip.BadGzipFile:
        if not body.startswith(b"\x1f\x8b"):
            return body  # an encoding that is not true of the body: it is looked at as it is
    except (EOFError, zlib.error):
        pass
    raise ValueError(f"content-encoding {coding} cannot be looked into here")
