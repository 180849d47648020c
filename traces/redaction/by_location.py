"""Redaction of credentials by location: header fields, cookies, URLs and forms.

Clients repeat the same fields and addresses, so results are cached until the set of known values
changes.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from traces.model import Headers
from traces.redaction.detection.credential_names import (
    AUTH_SCHEME,
    COOKIE_PAIR,
    ONE_TIME_SCHEME,
    PARAMETER,
    PROTOCOL_TOKEN,
    URL_USERINFO,
    can_be_auth_header,
    is_auth_header,
    is_cookie_attribute,
    is_secret_parameter,
    parse_basic_auth,
    parse_url_userinfo,
)
from traces.redaction.detection.value_forms import is_random_token
from traces.redaction.known_values import KnownValueIndex
from traces.redaction.placeholder import PLACEHOLDER, PlaceholderRegistry
from traces.redaction.scanner import SecretScanner
from traces.redaction.text_buffer import replace_spans

_KEPT = 512


class LocationRedactor:
    """Replaces credentials by their location; replaced values become known values."""

    def __init__(
        self, search: SecretScanner, known: KnownValueIndex, names: PlaceholderRegistry
    ) -> None:
        self._search, self._known, self._names = search, known, names
        self._generation = 0
        self._fields: dict[tuple[str, str], tuple[str, str]] = {}
        self._urls: dict[str, str] = {}

    def redact_headers(self, headers: Headers) -> Headers:
        """Return the headers with credentials replaced; scheme words and cookie names remain."""
        self._drop_stale_entries()
        fields = self._fields
        try:
            return tuple([fields[field] for field in headers])
        except KeyError:
            return self._redact_new_headers(headers)

    def _redact_new_headers(self, headers: Headers) -> Headers:
        fields, generation = self._fields, self._known.generation
        new = [field for field in headers if field not in fields]
        redacted = [(name, self._redact_field(name.lower(), value)) for name, value in new]
        if generation != self._known.generation:
            return self._redact_linked_headers(headers)
        are_clean = self._are_clean([value for _, value in redacted])
        for field, (name, value) in zip(new, redacted, strict=True):
            fields[field] = name, value if are_clean else self._redact_text(value)
        if generation != self._known.generation:
            return self._redact_linked_headers(headers)
        return tuple([fields[field] for field in headers])

    def _redact_linked_headers(self, headers: Headers) -> Headers:
        """Redact headers of which some contain values to search in the others."""
        redacted = [(name, self._redact_field(name.lower(), value)) for name, value in headers]
        result = list[tuple[str, str]]()
        for _ in range(2):  # a URL in one field may add a value that occurs in another
            self._drop_stale_entries()
            fields, result = self._fields, []
            for field, (name, value) in zip(headers, redacted, strict=True):
                result.append(fields.get(field) or (name, self._redact_text(value)))
            if self._generation == self._known.generation:
                fields.update(zip(headers, result, strict=True))
                break
        return tuple(result)

    def _drop_stale_entries(self) -> None:
        """Clear the caches if the known values changed, or if a cache is too large."""
        if self._generation != self._known.generation:
            self._generation = self._known.generation
            self._fields, self._urls = {}, {}
        if len(self._fields) > _KEPT:
            self._fields = {}
        if len(self._urls) > _KEPT:
            self._urls = {}

    def redact_request_url(self, url: str) -> str:
        """Return the URL of a request without its credentials and without known values."""
        self._drop_stale_entries()
        if (redacted := self._urls.get(url)) is None:
            raw = self.redact_urls(url.encode("utf-8", "surrogateescape"))
            redacted = raw.decode("utf-8", "surrogateescape")
            if self._generation == self._known.generation:
                self._urls[url] = redacted
        return redacted

    def redact_urls(self, url: bytes) -> bytes:
        """Return text with URLs in it, with named credentials and known values replaced."""
        if b"@" in url:
            url = URL_USERINFO.sub(self._redact_userinfo, url)
        if b"=" in url:
            url = PARAMETER.sub(self._redact_parameter, url)
        spans = self._search.find_spans(url)
        return replace_spans(url, spans) if spans else url

    def _are_clean(self, values: Iterable[str]) -> bool:
        """True only if `_redact_text` changes none of the values."""
        texts = [value.encode("latin-1") for value in values]
        if any([b"@" in text or b"=" in text for text in texts]):
            return False
        return self._search.are_clean(texts)

    def _redact_text(self, value: str) -> str:
        return self.redact_urls(value.encode("latin-1")).decode("latin-1")

    def _redact_field(self, name: str, value: str) -> str:
        if name in ("cookie", "set-cookie"):
            return COOKIE_PAIR.sub(self._redact_cookie, value)
        if name == "sec-websocket-protocol":
            return PROTOCOL_TOKEN.sub(self._redact_protocol, value)
        if not is_auth_header(name) and not can_be_auth_header(name, value):
            return value
        scheme = AUTH_SCHEME.match(value)
        prefix = scheme[0] if scheme else ""
        credential = value[len(prefix) :].encode("latin-1")
        if not credential or PLACEHOLDER.fullmatch(credential):
            return value
        if prefix.lower().startswith("basic"):
            for part in parse_basic_auth(value[len(prefix) :]):
                self._known.learn(part)
        if not ONE_TIME_SCHEME.match(prefix):
            self._known.learn(credential)
        return prefix + self._mask(credential, len(credential)).decode()

    def _redact_cookie(self, match: re.Match[str]) -> str:
        value = match[2].encode("latin-1")
        if is_cookie_attribute(match[1]) or not value or PLACEHOLDER.fullmatch(value):
            return match[0]
        self._known.learn(value)
        return match[1] + self._mask(value, len(value)).decode()

    def _redact_protocol(self, match: re.Match[str]) -> str:
        """Redact a random value offered as a protocol, which browsers use for want of a header."""
        value = match[0].encode("latin-1")
        if not is_random_token(value) or PLACEHOLDER.fullmatch(value):
            return match[0]
        self._known.learn(value)
        return self._mask(value, len(value)).decode()

    def _redact_userinfo(self, match: re.Match[bytes]) -> bytes:
        secret = parse_url_userinfo(match[2])
        if PLACEHOLDER.fullmatch(secret) or not secret:
            return match[0]
        self._known.learn(secret)
        name, colon, password = match[2].partition(b":")
        prefix = name + colon if password else b""
        rest = len(match[2]) - len(prefix)
        after = colon if not password else b""
        return match[1] + prefix + self._mask(secret, rest - len(after)) + after + b"@"

    def _redact_parameter(self, match: re.Match[bytes]) -> bytes:
        secret = unquote_to_bytes(match[3].replace(b"+", b" "))
        if not is_secret_parameter(match) or PLACEHOLDER.fullmatch(secret):
            return match[0]
        self._known.learn(secret)
        return match[1] + self._mask(secret, len(match[3]))

    def _mask(self, secret: bytes, length: int) -> bytes:
        """Return a placeholder with a tag, longer than a short secret: it tells values apart."""
        return self._names.placeholder_for(secret, length, has_tag=True)
