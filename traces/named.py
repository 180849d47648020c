"""Credentials where their place has a name: header fields, cookies, URLs and forms.

Clients send the same fields and addresses again and again, so what became of one is kept for
as long as no other value is looked for than then.
"""

import re
from urllib.parse import unquote_to_bytes

from traces.credentials import (
    COOKIE,
    ONE_TIME,
    PARAMETER,
    SCHEME,
    USER,
    in_basic,
    in_user,
    is_attribute,
    is_auth,
    is_secret,
)
from traces.known import Known
from traces.model import Headers
from traces.placeholder import PLACEHOLDER, Names
from traces.said import bent
from traces.search import Search

_KEPT = 512


class Named:
    """Replaces what is a credential by its place; what it replaces is known from then on."""

    def __init__(self, search: Search, known: Known, names: Names) -> None:
        self._search, self._known, self._names = search, known, names
        self._generation = 0
        self._fields: dict[tuple[str, str], tuple[str, str]] = {}
        self._urls: dict[str, str] = {}

    def headers(self, headers: Headers) -> Headers:
        """The headers with credentials replaced, scheme words and cookie names kept."""
        self._fresh()
        fields = self._fields
        try:
            return tuple([fields[field] for field in headers])
        except KeyError:
            return self._new(headers)

    def _new(self, headers: Headers) -> Headers:
        fields, generation = self._fields, self._known.generation
        new = [field for field in headers if field not in fields]
        named = [(name, self._field(name.lower(), value)) for name, value in new]
        if generation != self._known.generation:
            return self._taught(headers)
        for field, (name, value) in zip(new, named, strict=True):
            fields[field] = name, self._text(value)
        if generation != self._known.generation:
            return self._taught(headers)
        return tuple([fields[field] for field in headers])

    def _taught(self, headers: Headers) -> Headers:
        """Headers of which some hold what is to be looked for in the others."""
        named = [(name, self._field(name.lower(), value)) for name, value in headers]
        said = list[tuple[str, str]]()
        for _ in range(2):  # a URL in one of them may teach what stands in another
            self._fresh()
            fields, said = self._fields, []
            for field, (name, value) in zip(headers, named, strict=True):
                said.append(fields.get(field) or (name, self._text(value)))
            if self._generation == self._known.generation:
                fields.update(zip(headers, said, strict=True))
                break
        return tuple(said)

    def _fresh(self) -> None:
        """Forget what was said before other values were looked for, or what is too much."""
        if self._generation != self._known.generation:
            self._generation = self._known.generation
            self._fields, self._urls = {}, {}
        if len(self._fields) > _KEPT:
            self._fields = {}
        if len(self._urls) > _KEPT:
            self._urls = {}

    def address(self, url: str) -> str:
        """The URL of a request, without its credentials and without known values."""
        self._fresh()
        if (said := self._urls.get(url)) is None:
            raw = self.url(url.encode("utf-8", "surrogateescape"))
            said = raw.decode("utf-8", "surrogateescape")
            if self._generation == self._known.generation:
                self._urls[url] = said
        return said

    def url(self, url: bytes) -> bytes:
        """Text with URLs in it, credentials by name and known values replaced."""
        if b"@" in url:
            url = USER.sub(self._user, url)
        if b"=" in url:
            url = PARAMETER.sub(self._parameter, url)
        spans = self._search.spans(url)
        return bent(url, spans) if spans else url

    def _text(self, value: str) -> str:
        return self.url(value.encode("latin-1")).decode("latin-1")

    def _field(self, name: str, value: str) -> str:
        if name in ("cookie", "set-cookie"):
            return COOKIE.sub(self._cookie, value)
        if not is_auth(name):
            return value
        scheme = SCHEME.match(value)
        kept = scheme[0] if scheme else ""
        said = value[len(kept) :].encode("latin-1")
        if PLACEHOLDER.fullmatch(said):
            return value
        if kept.lower().startswith("basic"):
            for part in in_basic(value[len(kept) :]):
                self._known.learn(part)
        if not ONE_TIME.match(kept):
            self._known.learn(said)
        return kept + self._names.instead(said, len(said)).decode()

    def _cookie(self, match: re.Match[str]) -> str:
        value = match[2].encode("latin-1")
        if is_attribute(match[1]) or not value or PLACEHOLDER.fullmatch(value):
            return match[0]
        self._known.learn(value)
        return match[1] + self._names.instead(value, len(value)).decode()

    def _user(self, match: re.Match[bytes]) -> bytes:
        secret = in_user(match[2])
        if PLACEHOLDER.fullmatch(secret) or not secret:
            return match[0]
        self._known.learn(secret)
        name, colon, password = match[2].partition(b":")
        kept = name + colon if password else b""
        rest = len(match[2]) - len(kept)
        after = colon if not password else b""
        return match[1] + kept + self._names.instead(secret, rest - len(after)) + after + b"@"

    def _parameter(self, match: re.Match[bytes]) -> bytes:
        secret = unquote_to_bytes(match[4].replace(b"+", b" "))
        if not is_secret(match) or PLACEHOLDER.fullmatch(secret):
            return match[0]
        self._known.learn(secret)
        return match[1] + self._names.instead(secret, len(match[4]))
