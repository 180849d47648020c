"""Secrets are replaced before the first byte is written, by text of the same length.

Same length keeps content-length, offsets and chunk sizes true, so a redacted tape replays as
it is; letters and digits only, so that JSON stays JSON and a URL a URL. A placeholder says a
class and the order of first occurrence (`REDACTEDo1xxxZ`), so equal secrets stay equal and
different ones different; no key for undoing it is kept. What a live request of a replay holds
gets its placeholders in the same order, so that another user's key still finds the answer.

Known values (environment variables named like keys; credentials seen in headers, cookies, URLs
and forms) are found however they are spelled (spelling.py); what only looks like a secret is
found by pattern (patterns.py). A request repeats most of the one before, so only what is new
in it is looked at, with an overlap.

What cannot be found: a secret encrypted, compressed inside a body, in hexadecimal, in HTML
entities or in base64 broken into lines; known ones under 8 bytes; unknown ones of no pattern.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote_to_bytes

from traces import patterns, recode
from traces.credentials import (
    COOKIE,
    ONE_TIME,
    PARAMETER,
    SCHEME,
    SHORTEST,
    USER,
    in_basic,
    in_user,
    is_attribute,
    is_auth,
    is_secret,
    secrets,
    telling,
)
from traces.delta import common_prefix
from traces.held import Span, Stream, bent
from traces.model import Chunk, Edit, Exchange, Headers, Request, edited, header
from traces.spelling import Needle, Reader, View, cut_escape, in_base64, needles

__all__ = ["PLACEHOLDER", "Redactor", "Stream", "placeholder", "secrets"]

PLACEHOLDER = re.compile(rb"(?:REDACTED|RD)[a-z]\d+x*Z")
_OVERLAP = 4096
_REMEMBERED = 4
_STRETCHES = 8
_LEARNED = 128
"""How many values seen on the wire are looked for at a time: the latest ones."""


def placeholder(tag: str, length: int) -> bytes:
    """What stands where a secret stood: letters and digits, of the same length."""
    for word in ("REDACTED", "RD", ""):
        if (rest := length - len(word) - len(tag) - 1) >= 0:
            return f"{word}{tag}{'x' * rest}Z".encode()
    return b"x" * length


@dataclass(frozen=True, slots=True)
class _Seen:
    body: bytes
    spans: list[Span]
    generation: int


class Redactor:
    """Replaces what must not be written; remembers, in memory only, what it has seen."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._given = {
            value.encode("utf-8", "surrogateescape"): tuple(
                needles(value.encode("utf-8", "surrogateescape"))
            )
            for value in known
            if len(value) >= SHORTEST
        }
        self._learned: dict[bytes, tuple[Needle, ...]] = {}
        self._tags: dict[bytes, str] = {}
        self._counts: dict[str, int] = {}
        self._generation = 0
        self._seen: list[_Seen] = []
        self._prepare()

    def _prepare(self) -> None:
        """What to search, by cost: long runs in the suspects only, the rest everywhere."""
        self._generation += 1
        every = [n for known in (self._given, self._learned) for all in known.values() for n in all]
        self._long = [(anchor, needle) for needle in every if (anchor := needle.anchor)]
        self._short = [needle for needle in every if not needle.anchor]
        self._heads: dict[bytes, list[Needle]] = {}
        for needle in every:
            self._heads.setdefault(needle.text[:3], []).append(needle)
        heads = b"|".join(re.escape(head) for head in self._heads)
        self._head = re.compile(b"(?=(" + heads + b"))") if heads else None
        self._bits = {needle.text[:size] for needle in every for size in (1, 2)}
        self._longest = max((len(needle.text) for needle in every), default=0)
        self._reader = Reader((*self._given, *self._learned), self._longest)

    def learn(self, value: bytes) -> None:
        """Look for this value from now on, if it can be told from plain words."""
        if value in self._given or not telling(value) or PLACEHOLDER.fullmatch(value):
            return
        if value in self._learned:
            self._learned[value] = self._learned.pop(value)
            return
        self._learned[value] = tuple(needles(value))
        if len(self._learned) > _LEARNED:
            del self._learned[next(iter(self._learned))]
        self._prepare()

    def _instead(self, value: bytes, length: int, kind: str | None = None) -> bytes:
        if (tag := self._tags.get(value)) is None:
            kind = kind or next((kind for _, _, kind in patterns.found(value, value)), "k")
            self._counts[kind] = self._counts.get(kind, 0) + 1
            tag = self._tags[value] = f"{kind}{self._counts[kind]}"
        return placeholder(tag, length)

    def headers(self, headers: Headers) -> Headers:
        """The headers with credentials replaced, scheme words and cookie names kept."""
        named = tuple((name, self._named(name.lower(), value)) for name, value in headers)
        together = "\n".join(value for _, value in named).encode("latin-1", "replace")
        if b"://" not in together and b"?" not in together and not self.spans(together):
            return named
        return tuple((name, self._text(value)) for name, value in named)

    def _text(self, value: str) -> str:
        return self._url(value.encode("latin-1")).decode("latin-1")

    def _named(self, name: str, value: str) -> str:
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
                self.learn(part)
        if not ONE_TIME.match(kept):
            self.learn(said)
        return kept + self._instead(said, len(said)).decode()

    def _cookie(self, match: re.Match[str]) -> str:
        value = match[2].encode("latin-1")
        if is_attribute(match[1]) or not value or PLACEHOLDER.fullmatch(value):
            return match[0]
        self.learn(value)
        return match[1] + self._instead(value, len(value)).decode()

    def _url(self, url: bytes) -> bytes:
        """Text with URLs in it, credentials by name and known values replaced."""
        if b"@" in url:
            url = USER.sub(self._user, url)
        if b"=" in url:
            url = PARAMETER.sub(self._parameter, url)
        return self.bytes(url)

    def _user(self, match: re.Match[bytes]) -> bytes:
        secret = in_user(match[2])
        if PLACEHOLDER.fullmatch(secret) or not secret:
            return match[0]
        self.learn(secret)
        name, colon, password = match[2].partition(b":")
        kept = name + colon if password else b""
        rest = len(match[2]) - len(kept)
        after = colon if not password else b""
        return match[1] + kept + self._instead(secret, rest - len(after)) + after + b"@"

    def _parameter(self, match: re.Match[bytes]) -> bytes:
        secret = unquote_to_bytes(match[4].replace(b"+", b" "))
        if not is_secret(match) or PLACEHOLDER.fullmatch(secret):
            return match[0]
        self.learn(secret)
        return match[1] + self._instead(secret, len(match[4]))

    def spans(self, data: bytes, *, stream: bool = False, final: bool = True) -> list[Span]:
        """The secrets in the data, in order: start, stop, and what is to stand there.

        `stream` looks for texts that events bring bit by bit, too; `final` False leaves out
        the half of a known secret that the data ends in, since more may come.
        """
        found = self._look(data)
        views = self._reader.unescaped(data)
        for view in (*views, *self._reader.framed(data)) if stream else views:
            for start, stop, instead in self._look(view.text):
                found += _placed(view, start, stop, instead)
        if final and data:
            found += self._half(data)
        return _settled(found, data)

    def _look(self, data: bytes) -> list[Span]:
        hay, found = patterns.suspects(data), list[Span]()
        for anchor, needle in self._long:
            if anchor in hay:
                found += self._occurrences(data, needle)
        for needle in self._short:
            if needle.text in data:
                found += self._occurrences(data, needle)
        for start, stop, kind in patterns.found(data, hay):
            found.append((start, stop, self._instead(data[start:stop], stop - start, kind)))
        return found

    def _occurrences(self, data: bytes, needle: Needle) -> list[Span]:
        found, at = list[Span](), data.find(needle.text)
        while at >= 0:
            secret = needle.secret
            if needle.shift is None:
                stop = at + len(needle.text)
                found.append((at, stop, self._instead(secret, stop - at)))
            else:
                found.append(in_base64(data, at, needle, self._instead(secret, len(secret))))
            at = data.find(needle.text, at + 1)
        return found

    def unfinished(self, data: bytes, *, stream: bool = False) -> int:
        """Where the end of the data begins that may be the beginning of a secret."""
        base = max(0, len(data) - patterns.LONGEST)
        tail = data[base:]
        cut = cut_escape(tail)
        views = [self._reader.whole(tail[:cut])]
        if stream:
            views += self._reader.framed(tail)
        first = cut
        for each in views:
            at = min(patterns.unfinished(each.text), self._begun(each.text)[0])
            if at < len(each.text):
                first = min(first, each.ranges(at, at + 1)[0][0])
        return base + first

    def _begun(self, text: bytes) -> tuple[int, bytes]:
        """Where the beginning of a known secret stands at the end, and which one it is."""
        if self._head is None:
            return len(text), b""
        for match in self._head.finditer(text, max(0, len(text) - self._longest)):
            rest = text[match.start() :]
            for needle in self._heads[match[1]]:
                if len(rest) < len(needle.text) and needle.text.startswith(rest):
                    return match.start(), needle.secret
        for size in (2, 1):
            if text[-size:] in self._bits:
                return len(text) - size, b""
        return len(text), b""

    def _half(self, data: bytes) -> list[Span]:
        at, secret = self._begun(data)
        if not secret or len(data) - at < SHORTEST:
            return []
        return [(at, len(data), self._instead(secret, len(data) - at))]

    def request(self, request: Request) -> Request:
        """The request as it may be written and matched."""
        headers = self.headers(request.headers)
        url = self._url(request.url.encode("utf-8", "surrogateescape")).decode(
            "utf-8", "surrogateescape"
        )
        body = self.body(request.headers, request.body)
        if len(body) != len(request.body):
            headers = with_length(headers, len(body))
        return replace(request, url=url, headers=headers, body=body)

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
            return self._url(body)
        spans = self._new(body)
        return bent(body, spans) if spans else body

    def _new(self, body: bytes) -> list[Span]:
        """The secrets of a request body; only what no recent body holds is searched."""
        if len(body) < _OVERLAP:
            return self.spans(body)
        recent = [seen for seen in self._seen if seen.generation == self._generation]
        near = [common_prefix(body, seen.body) for seen in recent]
        best = max(range(len(near)), key=near.__getitem__, default=None)
        spans = self.spans(body) if best is None else self._since(recent[best], body)
        self._seen = [*recent[-_REMEMBERED + 1 :], _Seen(body, spans, self._generation)]
        return spans

    def _since(self, seen: _Seen, body: bytes) -> list[Span]:
        """The secrets of a body, those of an older one taken over where it says the same."""
        overlap = max(_OVERLAP, 6 * self._longest)
        spans, at = list[Span](), 0
        for start, there, size in _stretches(body, seen.body):
            low = start + overlap if start or there else 0
            to_the_end = start + size == len(body) and there + size == len(seen.body)
            high = start + size - (0 if to_the_end else overlap)
            moved = [(b + start - there, e + start - there, i) for b, e, i in seen.spans]
            # No cut goes through a secret.
            low = max((e for b, e, _ in moved if b < low < e), default=low)
            high = min((b for b, e, _ in moved if b < high < e), default=high)
            if low >= high:
                continue
            spans += self._part(body, at, low)
            spans += [span for span in moved if low <= span[0] and span[1] <= high]
            at = high
        return spans + self._part(body, at, len(body))

    def _part(self, body: bytes, start: int, stop: int) -> list[Span]:
        found = self.spans(body[start:stop], final=stop == len(body)) if start < stop else []
        return [(begin + start, end + start, instead) for begin, end, instead in found]

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
        return Stream(self, headers, messages=messages)

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
            for taken in (*(each for each in answer.chunks), None):
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
        spans = self.spans(data)
        return bent(data, spans) if spans else data


def _stretches(body: bytes, parent: bytes) -> Iterator[tuple[int, int, int]]:
    """Where in body and parent, and for how long, they say the same; in order, not all of it.

    Clients move a marker or put a reminder in at the front: behind it all is as before.
    """
    at = there = 0
    for _ in range(_STRETCHES):
        size = common_prefix(body[at:], parent[there:])
        yield at, there, size
        at, there = at + size, there + size
        for skip in (16, 256, 2048):
            probe = body[at + skip : at + skip + 64]
            again = parent.find(probe, there, there + 8192) if len(probe) == 64 else -1
            if again >= 0:
                at, there = at + skip, again
                break
        else:
            return


def with_length(headers: Headers, length: int) -> Headers:
    """The headers with their content-length, if they have one, set to `length`."""
    return tuple(
        (name, str(length) if name.lower() == "content-length" else value)
        for name, value in headers
    )


def _placed(view: View, start: int, stop: int, instead: bytes) -> list[Span]:
    """A find in a view as spans of the original; the placeholder is cut where frames cut it."""
    ranges = view.ranges(start, stop)
    length = sum(high - low for low, high in ranges)
    if length != len(instead):
        instead = _stretched(instead, length)
    out, at = list[Span](), 0
    for low, high in ranges:
        out.append((low, high, instead[at : at + high - low]))
        at += high - low
    return out


def _stretched(instead: bytes, length: int) -> bytes:
    """A placeholder of more bytes, for a secret whose spelling is longer than it is."""
    more = length - len(instead)
    return instead[:-1] + b"x" * more + instead[-1:]


def _settled(found: list[Span], data: bytes) -> list[Span]:
    """Finds in order, without overlaps and without what is a placeholder already."""
    if not found:
        return found
    out = list[Span]()
    for start, stop, instead in sorted(found, key=lambda span: (span[0], -span[1])):
        if PLACEHOLDER.fullmatch(data, start, stop):
            continue
        if out and start < out[-1][1]:
            before = out[-1]
            if stop > before[1]:
                out[-1] = (before[0], stop, _stretched(before[2], stop - before[0]))
            continue
        out.append((start, stop, instead))
    return out
