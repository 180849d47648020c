"""What a request says, as a key: the same for two that differ only in what does not count.

The key forgives spacing, key order and escapes, the volatile values of `traces.volatile`, what
the rules of the user name, and what stands where a secret stood: the key of another user has
another length and maybe another place in the order of secrets.
"""

import json
from dataclasses import dataclass
from hashlib import blake2b

from replay.rules import Rules
from traces.canonical import canonical_value
from traces.dialects import lens
from traces.encoding import legible
from traces.model import Request
from traces.reader import Reader
from traces.redact import PLACEHOLDER
from traces.step import Lens
from traces.tape import digest
from traces.volatile import in_order, result_id


def blind(said: bytes) -> bytes:
    """The text with the same word wherever a secret stood."""
    return PLACEHOLDER.sub(b"REDACTED", said) if b"RE" in said or b"RD" in said else said


def _value(text: bytes) -> object:
    """A parsed text; NaN and Infinity, which Python writes, do not become null in its key."""
    return json.loads(text, parse_constant=lambda name: {name: {}})


@dataclass(frozen=True, slots=True)
class _Message:
    said: bytes
    """A hash of what counts of it; nothing where a rule passes over all messages."""
    id: str | None
    """Of a result."""


class Alike:
    """The keys of requests by what they say, under some rules.

    A model request repeats most of the one before, so only its new messages are looked at.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._readers: dict[str, Reader[_Message, bytes]] = {}

    def __call__(self, request: Request) -> bytes | None:
        """The key; None where only its very bytes can tell what a request says.

        That is so for a body that is no JSON, or too deep, unless a secret stood there or in the
        URL, or a rule passes over something in the URL.
        """
        body = legible(request.headers, request.body)
        bare = self._rules.url(request.url)
        url = blind(bare.encode("utf-8", "surrogatepass"))
        try:
            said = self._said(lens(request), body)
        except (ValueError, RecursionError):
            said = blind(body)
            if bare == request.url and b"REDACTED" not in url and b"REDACTED" not in said:
                return None
        return digest(request.method, url.decode("utf-8", "surrogatepass"), said)

    def _said(self, dialect: Lens | None, body: bytes) -> bytes:
        if dialect is None:
            return self._canonical(None, _value(body))
        read = self._reader(dialect).read(body)
        messages = in_order(read.items, lambda message: message.id)
        return read.rest + b"".join([message.said for message in messages])

    def _reader(self, dialect: Lens) -> Reader[_Message, bytes]:
        if dialect.NAME not in self._readers:

            def message(text: bytes) -> _Message:
                value = _value(text)
                id, said = (
                    result_id(dialect, value),
                    self._canonical(dialect, {dialect.LIST: [value]}),
                )
                counts = said != b"{}"
                return _Message(blake2b(said, digest_size=16).digest() if counts else b"", id)

            def rest(text: bytes) -> bytes:
                return self._canonical(dialect, _value(text))

            self._readers[dialect.NAME] = Reader(dialect.LIST, message, rest)
        return self._readers[dialect.NAME]

    def _canonical(self, dialect: Lens | None, value: object) -> bytes:
        return blind(canonical_value(self._rules.body(dialect, value)))
