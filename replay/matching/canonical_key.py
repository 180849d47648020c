"""Compute a canonical key: equal for requests that differ only in parts that do not count.

The key ignores JSON spacing, key order and escapes, the volatile values of
`traces.conversation.volatile_fields`, the parts that the user's rules name, and the boundary of a
multipart body. A secret with a name (an environment variable) is the same regardless of its value,
because another user's key has another length. Any other secret is represented by its placeholder,
which no other value of a run has.
"""

from collections.abc import Callable, Iterable
from copy import replace
from hashlib import blake2b

from msgspec import Struct, field

from replay.matching.headers import find_multipart_delimiter
from replay.matching.rules import MatchRules
from traces.bodies.canonical_json import dump_canonical_json, parse_exact_json
from traces.bodies.incremental_json import IncrementalListReader
from traces.bodies.streaming_encoding import decode_complete_content
from traces.conversation.volatile_fields import (
    RemovedValues,
    VolatileValue,
    find_result_order_id,
    sort_adjacent_results,
)
from traces.dialects import find_dialect
from traces.dialects.types import DialectLens
from traces.model import Request
from traces.redaction.fingerprints import RedactionRecord, find_replaceable_tags
from traces.redaction.placeholder import PLACEHOLDER
from traces.tape.table_of_contents import hash_request_parts

type PlaceholderNormalizer = Callable[[bytes], bytes]
"""Makes placeholders of the same secret equal, regardless of its length."""


def _keep_placeholders(data: bytes) -> bytes:
    return data


def _shorten_placeholders(data: bytes) -> bytes:
    return PLACEHOLDER.sub(rb"REDACTED\1Z", data)


def make_placeholder_normalizer(
    redactions: Iterable[RedactionRecord] | None,
) -> PlaceholderNormalizer:
    """Ignore the value of secrets that another user has too; of all, if no redactions are known."""
    if redactions is None:
        return _shorten_placeholders
    replaceable = frozenset(tag.encode() for tag in find_replaceable_tags(redactions))

    def normalize(data: bytes) -> bytes:
        if b"RE" not in data and b"RD" not in data:
            return data
        return PLACEHOLDER.sub(
            lambda found: b"REDACTED%bZ" % found[1] if found[1] in replaceable else found[0], data
        )

    return normalize if replaceable else _keep_placeholders


class MatchKey(Struct, frozen=True):
    """A key of the parts of a request that count, and the volatile values that do not."""

    key: bytes
    drawn: tuple[VolatileValue, ...] = ()


class _MessageKey(Struct, frozen=True):
    """The key of a message, or of the body around the messages."""

    said: bytes = b""
    """Hash of the part that counts; empty if a rule ignores all messages."""
    id: str | None = None
    """Ordering id, for a tool result."""
    taken: RemovedValues = field(default_factory=RemovedValues)


class CanonicalKeys:
    """Computes the canonical keys of requests, under some rules.

    A model request repeats most of the previous one, so only its new messages are processed.
    """

    def __init__(
        self, rules: MatchRules, redactions: Iterable[RedactionRecord] | None = ()
    ) -> None:
        """`redactions` are those of the recording; None for a tape of an earlier version."""
        self._rules = rules
        self._blind = make_placeholder_normalizer(redactions)
        self._readers: dict[str, IncrementalListReader[_MessageKey, _MessageKey]] = {}

    def __call__(self, request: Request) -> MatchKey | None:
        """Return the canonical key; None if only the exact bytes can identify the request.

        That is so for a body that is not JSON, or is nested too deeply, unless it is multipart, a
        named secret was in it or in the URL, or a rule names something in URLs.
        """
        if not self._rules.has_body:
            request = Request(method=request.method, url=request.url, headers=request.headers)
        body = decode_complete_content(request.headers, request.body)
        url = self._blind(self._rules.normalize_url(request.url).encode("utf-8", "surrogatepass"))
        generated: tuple[VolatileValue, ...] = ()
        try:
            digest, generated = self._compute_digest(
                find_dialect(request), b"" if body is None else body
            )
        except (ValueError, RecursionError):
            raw = request.body if body is None else body
            digest = _normalize_multipart(request, self._rules.normalize_text(self._blind(raw)))
            is_unchanged = digest == raw and url == request.url.encode("utf-8", "surrogatepass")
            if is_unchanged and self._rules.has_body and not self._rules.has_url:
                return None
        return MatchKey(
            hash_request_parts(request.method, url.decode("utf-8", "surrogatepass"), digest),
            generated,
        )

    def _compute_digest(
        self, dialect: DialectLens | None, body: bytes
    ) -> tuple[bytes, tuple[VolatileValue, ...]]:
        if dialect is None or self._rules.names_indexed_item(dialect):
            part = self._to_message_key(dialect, parse_exact_json(body))
            return part.said, tuple(part.taken.values)
        conversation = self._get_reader(dialect).read(body)
        parts = (
            conversation.rest,
            *sort_adjacent_results(conversation.items, lambda message: message.id),
        )
        moved_values = sorted(each for part in parts for each in part.taken.moved_values)
        digest = b"".join([*(part.said for part in parts), *moved_values])
        return digest, tuple(each for part in parts for each in part.taken.values)

    def _get_reader(self, dialect: DialectLens) -> IncrementalListReader[_MessageKey, _MessageKey]:
        if dialect.NAME not in self._readers:

            def message(text: bytes) -> _MessageKey:
                value = parse_exact_json(text)
                key = self._to_message_key(dialect, {dialect.MESSAGES_KEY: [value]})
                return replace(key, id=find_result_order_id(dialect, value))

            def rest(text: bytes) -> _MessageKey:
                return self._to_message_key(dialect, parse_exact_json(text))

            self._readers[dialect.NAME] = IncrementalListReader(dialect.MESSAGES_KEY, message, rest)
        return self._readers[dialect.NAME]

    def _to_message_key(self, dialect: DialectLens | None, value: object) -> _MessageKey:
        removed = RemovedValues()
        text = dump_canonical_json(self._rules.normalize_body(dialect, value, removed))
        if text == b"{}":
            return _MessageKey()
        digest = blake2b(self._blind(text), digest_size=16)
        digest.update(removed.encode_places())
        return _MessageKey(digest.digest(), taken=removed)


def _normalize_multipart(request: Request, body: bytes) -> bytes:
    """Return the parts of a multipart body without the boundary; any other body unchanged."""
    line = find_multipart_delimiter(request)
    return body if line is None else repr(line.split(body)).encode()
