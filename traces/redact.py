"""Secrets are replaced before the first byte is written, by text of the same length.

Same length keeps content-length, offsets and chunk sizes true, so a redacted tape replays as
it is. Auth headers and cookies go by name; known values (environment variables named like
keys, and every auth value seen so far) go wherever they stand in a URL or body. No key for
undoing it exists. The live request of a replay passes through the same function before it is
matched, so that another user's key still finds the recorded answer.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from traces.model import Chunk, Exchange, Headers, Request

AUTH = frozenset(
    (
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-auth-token",
        "x-amz-security-token",
        "cookie",
        "set-cookie",
    )
)
_KEY_NAME = re.compile(r"(?i)(key|token|secret|passw|credential)")
_NOT_SECRET = re.compile(r"(?i)^(/|\d+$|true$|false$|none$)")
_SCHEME = re.compile(r"(?i)^(bearer|basic|digest|token|aws4-hmac-sha256)\s+")
_SHORTEST = 8


def secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of variables that are named like keys, longest first.

    Paths, numbers and values under 8 characters are left alone: replacing every `1` of a body
    because MAX_TOKENS is 1 would destroy the recording.
    """
    found = {
        value
        for name, value in environment.items()
        if _KEY_NAME.search(name) and len(value) >= _SHORTEST and not _NOT_SECRET.match(value)
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def placeholder(length: int) -> str:
    """What stands where a secret stood: letters only, of the same length."""
    return ("REDACTED" + "x" * length)[:length]


class Redactor:
    """Replaces what must not be written; remembers auth values it has seen."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known: dict[bytes, bytes] = {}
        for value in known:
            self._learn(value)

    def _learn(self, value: str) -> None:
        if len(value) >= _SHORTEST and not value.startswith("REDACTED"):
            self._known[value.encode()] = placeholder(len(value.encode())).encode()

    def headers(self, headers: Headers) -> Headers:
        """The headers with auth values and cookies replaced, scheme words kept."""
        return tuple((name, self._header(name.lower(), value)) for name, value in headers)

    def _header(self, name: str, value: str) -> str:
        if name not in AUTH:
            return self.bytes(value.encode("latin-1")).decode("latin-1") if self._known else value
        scheme = _SCHEME.match(value)
        kept = scheme[0] if scheme else ""
        if name not in ("cookie", "set-cookie"):
            self._learn(value[len(kept) :])
        return kept + placeholder(len(value) - len(kept))

    def bytes(self, data: bytes) -> bytes:
        """The data with every known secret replaced."""
        for secret, instead in self._known.items():
            if secret in data:
                data = data.replace(secret, instead)
        return data

    def request(self, request: Request) -> Request:
        """The request as it may be written and matched."""
        headers = self.headers(request.headers)
        url = self.bytes(request.url.encode()).decode()
        return replace(request, url=url, headers=headers, body=self.bytes(request.body))

    def chunk(self, chunk: Chunk) -> Chunk:
        """The chunk as it may be written."""
        data = self.bytes(chunk.data)
        return chunk if data is chunk.data else replace(chunk, data=data)

    def exchange(self, exchange: Exchange) -> Exchange:
        """The exchange as it may be written; marked where a body or URL had to change."""
        request, answer = self.request(exchange.request), exchange.response
        if answer is not None:
            chunks = tuple(self.chunk(chunk) for chunk in answer.chunks)
            answer = replace(answer, headers=self.headers(answer.headers), chunks=chunks)
        same = (request.body, request.url) == (exchange.request.body, exchange.request.url)
        same = same and (answer is None or answer.body == exchange.response.body)  # type: ignore[union-attr]
        marked = exchange.redacted or not same
        return replace(exchange, request=request, response=answer, redacted=marked)
