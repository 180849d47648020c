"""Secrets are replaced before the first byte is written, by text of the same length.

Same length keeps content-length, offsets and chunk sizes true, so a redacted tape replays as
it is; letters and digits only, so that JSON stays JSON and a URL a URL. A placeholder says a
class and the order of first occurrence (`REDACTEDo1xxxZ`), so equal secrets stay equal and
different ones different; no key for undoing it is kept. What a live request of a replay holds
gets its placeholders in the same order, so that another user's key still finds the answer.

Known values (environment variables named like keys; credentials seen in headers, cookies, URLs
and forms) are found however they are spelled; what only looks like a secret is found by
pattern. A request repeats most of the one before, so only what is new in it is looked at.

    credentials, named   values that are secret by where they stand
    known, needle        values that are looked for everywhere, and what of them to search
    patterns             what looks like a secret
    spelling, view       escapes undone, and where the text stood before
    search, repeats      the finds in a text, and in a request like the one before
    held                 an answer, while it streams
    placeholder          what is put there instead

What cannot be found: a secret encrypted, compressed inside a body, in hexadecimal, in HTML
entities or in base64 broken into lines; known ones under 8 bytes; unknown ones of no pattern.
"""

from collections.abc import Iterable
from dataclasses import replace

from traces import recode
from traces.credentials import secrets
from traces.held import Stream, brings_events
from traces.known import Known
from traces.model import Chunk, Edit, Exchange, Headers, Request, Response, edited, header
from traces.named import Named
from traces.placeholder import PLACEHOLDER, Names, placeholder
from traces.repeats import Repeats
from traces.said import Span, bent
from traces.search import Search

__all__ = ["PLACEHOLDER", "Redactor", "Stream", "placeholder", "secrets", "with_length"]

_LARGE, _WINDOW, _GLANCE = 1 << 24, 1 << 18, 1 << 16


class Redactor:
    """Replaces what must not be written; remembers, in memory only, what it has seen."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        names = Names()
        self._known = Known(known)
        self._search = Search(self._known, names)
        self._named = Named(self._search, self._known, names)
        self._repeats = Repeats(self._search, self._known)

    def learn(self, value: bytes) -> None:
        """Look for this value from now on, if it can be told from plain words."""
        self._known.learn(value)

    def headers(self, headers: Headers) -> Headers:
        """The headers with credentials replaced, scheme words and cookie names kept."""
        return self._named.headers(headers)

    def spans(self, data: bytes) -> list[Span]:
        """The secrets in the data, in order: start, stop, and what is to stand there."""
        return self._search.spans(data)

    def request(self, request: Request) -> Request:
        """The request as it may be written and matched."""
        headers = self._named.headers(request.headers)
        generation = self._known.generation
        url = self._named.address(request.url)
        body = self.body(request.headers, request.body)
        if generation != self._known.generation:  # what they taught may stand before them
            headers = self._named.headers(request.headers)
            url = self._named.address(request.url)
        if len(body) != len(request.body):
            headers = with_length(headers, len(body))
        return Request(method=request.method, url=url, headers=headers, body=body)

    def body(self, headers: Headers, body: bytes) -> bytes:
        """A request body as it may be written, encoded again if something was found in it."""
        if not body:
            return body
        decoding = recode.decoding(names := recode.names(headers))
        if decoding is None:
            return self._plain(headers, body)
        try:
            plain = decoding.feed(body)
        except recode.BROKEN:
            return self._plain(headers, body)
        clean = self._plain(headers, plain)
        if clean == plain:
            return body
        encoding = recode.encoding(names)
        return encoding.feed(clean) + encoding.finish()

    def _plain(self, headers: Headers, body: bytes) -> bytes:
        if "x-www-form-urlencoded" in (header(headers, "content-type") or ""):
            return self._named.url(body)
        if len(body) > _LARGE:
            return self._long(body)
        spans = self._repeats.spans(body)
        return bent(body, spans) if spans else body

    def _long(self, body: bytes) -> bytes:
        """The same for what is no conversation: looked at bit by bit, and not remembered."""
        for wanted in (False, True):
            stream, out = self.stream(()), list[bytes]()
            for start in range(0, len(body), _WINDOW):
                given = stream.chunk(Chunk(at=0.0, data=body[start : start + _WINDOW]))
                out += [each.data for each in given] if wanted else ()
            given = stream.done()
            if not stream.changed:
                return body
            out += [each.data for each in given]
        return b"".join(out)

    def edits(self, exchange: Exchange, body: bytes) -> tuple[Edit, ...]:
        """The edits of an exchange whose body is written as `body`."""
        if not exchange.edits:
            return ()
        if len(body) == len(exchange.request.body):
            return tuple(replace(edit, data=self.bytes(edit.data)) for edit in exchange.edits)
        # Offsets of the wire no longer fit: one edit says the whole.
        forwarded = edited(exchange.request.body, exchange.edits)
        said = self.body(exchange.request.headers, forwarded)
        return (Edit(start=0, stop=len(body), data=said),)

    def stream(self, headers: Headers, *, messages: bool = False) -> Stream:
        """What the chunks of one answer go through on their way to the tape."""
        return Stream(self._search, headers, messages=messages)

    def keeps(self, answer: Response) -> bool:
        """True where a whole answer is sure to be written as it came.

        False where it is not, or where only a closer look could tell: an encoded body, a large one.
        """
        if sum([len(chunk.data) for chunk in answer.chunks]) > _GLANCE:
            return False
        if header(answer.headers, "content-encoding") is not None:
            return False
        return self._search.sees_nothing(answer.body, stream=brings_events(answer.headers))

    def chunk(self, chunk: Chunk) -> Chunk:
        """The chunk as it may be written, if nothing comes before or after it."""
        data = self.bytes(chunk.data)
        return chunk if data is chunk.data else replace(chunk, data=data)

    def exchange(self, exchange: Exchange) -> Exchange:
        """The exchange as it may be written; marked where a body or URL had to change."""
        request, answer = self.request(exchange.request), exchange.response
        changed = (request.url, request.body) != (exchange.request.url, exchange.request.body)
        edits = self.edits(exchange, request.body)
        if answer is not None:
            stream = self.stream(answer.headers, messages=exchange.transport != "http")
            chunks = list[Chunk]()
            for taken in (*answer.chunks, None):
                given = stream.done() if taken is None else stream.chunk(taken)
                chunks = given if stream.anew else chunks + given
            headers = self.headers(answer.headers)
            if stream.encoded_again:
                headers = with_length(headers, stream.length)
            changed = changed or stream.changed
            answer = replace(
                answer,
                headers=headers,
                chunks=tuple(chunks),
                trailers=self.headers(answer.trailers),
            )
        marked = exchange.redacted or changed or edits != exchange.edits
        return replace(exchange, request=request, response=answer, edits=edits, redacted=marked)

    def bytes(self, data: bytes) -> bytes:
        """The data with every secret replaced; the same object where there is none."""
        spans = self._search.spans(data)
        return bent(data, spans) if spans else data


def with_length(headers: Headers, length: int) -> Headers:
    """The headers with their content-length, if they have one, set to `length`."""
    return tuple(
        (name, str(length) if name.lower() == "content-length" else value)
        for name, value in headers
    )
