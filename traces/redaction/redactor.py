"""Redactor: replaces secrets by text of the same length before the first byte is written.

The same length keeps content-length, offsets and chunk sizes correct, so a redacted tape replays
unchanged; placeholders are letters and digits only, so that JSON stays JSON and a URL a URL. A
placeholder names a class and the order of first occurrence (`REDACTEDo1xxxZ`), so equal secrets
have equal placeholders and different ones different; nothing that could reverse it is stored. In a
replay a secret of the recording gets its placeholder from there (`traces.redaction.fingerprints`),
and any other one gets a new one.

Known values (environment variables named like keys; credentials seen in headers, cookies, URLs and
forms) are found in every spelling; unknown secrets are found by pattern, or by a preceding name
(`"password": "..."`, `--api-key=...`) if they look like one. A request repeats most of the one
before, so only its new parts are searched.

    by_location                 credentials by header, cookie, URL and form field
    known_values, base64_search values searched everywhere, and the forms to search
    detection                   secrets by form, name, command-line option and place
    unescape, offset_map        decoded escapes, with the original offset of each byte
    scanner, prefix_cache       the secrets in a text, and in a request similar to the last
    stream, text_buffer         a response while it streams
    placeholder                 the replacement text
    fingerprints                recognition of a recording's secrets

Not found: a secret encrypted, compressed inside a body, in hexadecimal, in HTML entities or in
base64 broken into lines; known ones under 8 bytes; unknown ones that match no pattern.
"""

import json
import re
from collections.abc import Iterable, Sequence
from copy import replace

from traces.bodies import streaming_encoding
from traces.model import (
    BodyEdit,
    Chunk,
    Exchange,
    Headers,
    Request,
    Response,
    apply_body_edits,
    find_header,
)
from traces.redaction.by_location import LocationRedactor
from traces.redaction.detection.command_line import find_command_secrets
from traces.redaction.detection.credential_names import find_environment_secrets
from traces.redaction.fingerprints import KnownSecrets, RedactionRecord
from traces.redaction.known_values import KnownValueIndex
from traces.redaction.placeholder import PLACEHOLDER, PlaceholderRegistry, make_placeholder
from traces.redaction.prefix_cache import RequestPrefixCache
from traces.redaction.scanner import SecretScanner
from traces.redaction.stream import RedactionStream, has_event_stream_type
from traces.redaction.text_buffer import EventTexts, SpanReplacement, replace_spans

__all__ = [
    "PLACEHOLDER",
    "KnownSecrets",
    "RedactionRecord",
    "Redactor",
    "RedactionStream",
    "make_placeholder",
    "find_environment_secrets",
    "set_content_length",
]

_LARGE, _WINDOW, _GLANCE = 1 << 24, 1 << 18, 1 << 16
_FIELD = re.compile(rb"(?m)^([!-9;-~]+)(:[ \t]*)([^\r\n]+)")
"""A line like a header field: name, separator, value."""


class Redactor:
    """Replaces secrets; remembers them in memory only."""

    def __init__(
        self,
        known: Iterable[str] | KnownSecrets = (),
        recorded: Iterable[RedactionRecord] = (),
        seen: Iterable[RedactionRecord] = (),
    ) -> None:
        """`recorded` are the redactions of the replayed tape, `seen` those of the agent's files:
        the same value has the same placeholder.
        """
        if not isinstance(known, KnownSecrets):
            known = KnownSecrets(dict.fromkeys(known, ()))
        self._names = names = PlaceholderRegistry(known, recorded, seen)
        self._known = KnownValueIndex(known)
        self._search = SecretScanner(self._known, names)
        self._named = LocationRedactor(self._search, self._known, names)
        self._repeats = RequestPrefixCache(self._search, self._known)

    def learn(self, value: bytes) -> None:
        """Search this value from now on, if it is distinctive."""
        self._known.learn(value)

    def take_unwritten(self) -> list[RedactionRecord]:
        """Return the redactions since the last call: a tape has each before its first
        placeholder."""
        records = self._names.unwritten
        if records:
            self._names.unwritten = []
        return records

    def redact_headers(self, headers: Headers) -> Headers:
        """Return the headers with credentials replaced; scheme words and cookie names remain."""
        return self._named.redact_headers(headers)

    def find_spans(self, data: bytes) -> list[SpanReplacement]:
        """Return the secrets in the data, in order: start, stop and replacement."""
        return self._search.find_spans(data)

    def redact_request(self, request: Request) -> Request:
        """Return the request as it may be written and matched."""
        headers = self._named.redact_headers(request.headers)
        generation = self._known.generation
        url = self._named.redact_request_url(request.url)
        body = self.redact_body(request.headers, request.body)
        if generation != self._known.generation:  # new values may occur in earlier parts
            headers = self._named.redact_headers(request.headers)
            url = self._named.redact_request_url(request.url)
        if body is request.body and (url, headers) == (request.url, request.headers):
            return request  # what is known of it stays known
        if len(body) != len(request.body):
            headers = set_content_length(headers, len(body))
        return Request(method=request.method, url=url, headers=headers, body=body)

    def redact_body(self, headers: Headers, body: bytes) -> bytes:
        """Return a request body as it may be written, encoded again if a secret was replaced."""
        if not body:
            return body
        decoding = streaming_encoding.make_stream_decoder(
            names := streaming_encoding.parse_content_encodings(headers)
        )
        if decoding is None:
            return self._redact_plain_body(headers, body)
        try:
            plain = decoding.feed(body)
        except streaming_encoding.DECODING_ERRORS:
            return self._redact_plain_body(headers, body)
        clean = self._redact_plain_body(headers, plain)
        if clean == plain:
            return body
        encoding = streaming_encoding.make_stream_encoder(names)
        return encoding.feed(clean) + encoding.finish()

    def _redact_plain_body(self, headers: Headers, body: bytes) -> bytes:
        if "x-www-form-urlencoded" in (find_header(headers, "content-type") or ""):
            return self._named.redact_urls(body)
        if len(body) > _LARGE:
            return self._redact_long_body(body)
        spans = self._repeats.find_spans(body)
        return replace_spans(body, spans) if spans else body

    def _redact_long_body(self, body: bytes) -> bytes:
        """Redact a body too large for a conversation piece by piece, without caching it."""
        for is_output_pass in (False, True):
            stream, out = self.open_stream(()), list[bytes]()
            for start in range(0, len(body), _WINDOW):
                released = stream.chunk(Chunk(at=0.0, data=body[start : start + _WINDOW]))
                out += [each.data for each in released] if is_output_pass else ()
            released = stream.done()
            if not stream.has_changes:
                return body
            out += [each.data for each in released]
        return b"".join(out)

    def redact_command(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a command without secrets; their values are searched from now on."""
        encoded_words = [word.encode("utf-8", "surrogateescape") for word in words]
        for place, start, stop in sorted(find_command_secrets(words), reverse=True):
            before, value, after = (
                part.encode("utf-8", "surrogateescape")
                for part in (words[place][:start], words[place][start:stop], words[place][stop:])
            )
            if PLACEHOLDER.fullmatch(value):
                continue
            self._known.learn(value)
            encoded_words[place] = before + self._names.placeholder_for(value, len(value)) + after
        redacted = [
            (self._named.redact_urls(word) if b"://" in word else self.redact_bytes(word)).decode(
                "utf-8", "surrogateescape"
            )
            for word in encoded_words
        ]
        # As a list, which shows what an option before a word makes of it.
        return tuple(json.loads(self.redact_bytes(json.dumps(redacted).encode())))

    def redact_edits(self, exchange: Exchange, body: bytes) -> tuple[BodyEdit, ...]:
        """Return the edits of an exchange whose body is written as `body`."""
        if not exchange.edits:
            return ()
        if len(body) == len(exchange.request.body):
            return tuple(
                replace(edit, data=self.redact_bytes(edit.data)) for edit in exchange.edits
            )
        # Offsets on the wire no longer fit: one edit replaces the complete body.
        forwarded = apply_body_edits(exchange.request.body, exchange.edits)
        redacted = self.redact_body(exchange.request.headers, forwarded)
        return (BodyEdit(start=0, stop=len(body), data=redacted),)

    def open_stream(self, headers: Headers, *, messages: bool = False) -> RedactionStream:
        """Return a stream that redacts the chunks of one response on their way to the tape."""
        return RedactionStream(self._search, headers, messages=messages)

    def can_write_unchanged(self, answer: Response) -> bool:
        """True if a complete response can be written as received.

        False if it cannot, or if that needs a full search: an encoded body, a large one.
        """
        if sum([len(chunk.data) for chunk in answer.chunks]) > _GLANCE:
            return False
        if find_header(answer.headers, "content-encoding") is not None:
            return False
        events: EventTexts | None = {} if has_event_stream_type(answer.headers) else None
        return self._search.is_clean(answer.body, events=events)

    def redact_exchange(self, exchange: Exchange) -> Exchange:
        """Return the exchange as it may be written, marked if a body or URL changed."""
        request, answer = self.redact_request(exchange.request), exchange.response
        changed = (request.url, request.body) != (exchange.request.url, exchange.request.body)
        edits = self.redact_edits(exchange, request.body)
        if answer is not None:
            stream = self.open_stream(answer.headers, messages=exchange.transport != "http")
            chunks = list[Chunk]()
            for chunk in (*answer.chunks, None):
                released = stream.done() if chunk is None else stream.chunk(chunk)
                chunks = released if stream.anew else chunks + released
            headers = self.redact_headers(answer.headers)
            if stream.is_reencoded:
                headers = set_content_length(headers, stream.length)
            changed = changed or stream.has_changes
            answer = replace(
                answer,
                headers=headers,
                chunks=tuple(chunks),
                trailers=self.redact_headers(answer.trailers),
            )
        is_redacted = exchange.redacted or changed or edits != exchange.edits
        return replace(
            exchange,
            request=request,
            response=answer,
            edits=edits,
            redacted=is_redacted,
            unparsed=self.redact_unparsed(exchange.unparsed),
        )

    def redact_unparsed(self, data: bytes) -> bytes:
        """Return bytes that are no HTTP as they may be written: of a head that was cut, too."""
        return self.redact_bytes(_FIELD.sub(self._redact_field, data)) if data else data

    def _redact_field(self, match: re.Match[bytes]) -> bytes:
        name, value = match[1].decode(), match[3].decode("latin-1")
        ((_, clean),) = self.redact_headers(((name, value),))
        return match[1] + match[2] + clean.encode("latin-1")

    def redact_bytes(self, data: bytes) -> bytes:
        """Return the data with every secret replaced; the same object if it has none."""
        spans = self._search.find_spans(data)
        return replace_spans(data, spans) if spans else data


def set_content_length(headers: Headers, length: int) -> Headers:
    """Return the headers with their content-length, if present, set to `length`."""
    return tuple(
        (name, str(length) if name.lower() == "content-length" else value)
        for name, value in headers
    )
