"""How one secret can be spelled: as it is, escaped for JSON or a URL, or inside base64.

Escapes are undone in a view, a text that remembers where each of its bytes came from, so any
mix of them is one search (`sk\\u002d`, `sk%2D`, `sk%252d`, `\\\\/`). In base64 a text looks one
of three ways, by its place in the groups of three bytes; only the characters that no
neighbour touches are searched, and the whole groups are put right.
"""

import re
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from traces.patterns import MARKS, RUN

# Each begins with one set of two, which is what lets the search skip to them.
_ESCAPE = re.compile(
    rb"[\\%](?:(?<=\\)\\*+(?:u00([0-7][0-9a-fA-F])|(/))|(?<=%)(?:25)*([0-7][0-9a-fA-F]))"
)
_QUOTES = re.compile(
    rb"[\\%](?:(?<=\\)\\*(?:u00([0-7][0-9a-fA-F])|([/\"\\]))|(?<=%)(?:25)*([0-7][0-9a-fA-F]))"
)
_WIDE = re.compile(
    rb"[\\%](?:(?<=\\)\\*(?:u([0-9a-fA-F]{4})|([/\"\\]))|(?<=%)(?:25)*([0-9a-fA-F]{2}))"
)
_CUT = re.compile(rb"(?:\\+(?:u[0-9a-fA-F]{0,3})?|%[0-9a-fA-F]{0,4})\Z")
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]")
_SKIP = (0, 2, 3)
_FIELD = re.compile(
    rb'"(content|text|delta|arguments|partial_json|thinking|reasoning_content|reasoning)"'
    rb'\s*:\s*"((?:[^"\\]|\\.)*+)"'
)
"""The fields in which the dialects stream text, by the pieces that an event brings."""


@dataclass(frozen=True, slots=True)
class View:
    """A text made of pieces of another one: where each begins here, and where it stood there.

    A piece that is as long there as here is itself; any other is one spelling, kept whole.
    """

    text: bytes
    here: tuple[int, ...]
    there: tuple[int, ...]
    ends: tuple[int, ...]

    def ranges(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Where text[start:stop] stood in the original: one range, or one per frame it is in."""
        out: list[tuple[int, int]] = []
        for piece in range(bisect_right(self.here, start) - 1, len(self.here)):
            begin = self.here[piece]
            if begin >= stop:
                break
            end = self.here[piece + 1] if piece + 1 < len(self.here) else len(self.text)
            low, high = self.there[piece], self.ends[piece]
            if end == begin:
                continue
            if high - low == end - begin:
                low, high = low + max(start - begin, 0), low + min(stop, end) - begin
            if out and out[-1][1] == low:
                low = out.pop()[0]
            out.append((low, high))
        return out


class _Viewing:
    """Collects the pieces of a view."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._there: list[tuple[int, int]] = []

    def add(self, data: bytes, start: int, stop: int, escapes: Iterable[re.Match[bytes]]) -> None:
        """Take in data[start:stop], with these escapes undone."""
        for match in escapes:
            self._piece(data[start : match.start()], start, match.start())
            self._piece(_said(match), match.start(), match.end())
            start = match.end()
        self._piece(data[start:stop], start, stop)

    def _piece(self, text: bytes, start: int, stop: int) -> None:
        if text:
            self._pieces.append(text)
            self._there.append((start, stop))

    def view(self) -> View:
        here = tuple(accumulate((len(piece) for piece in self._pieces[:-1]), initial=0))
        there = tuple(start for start, _ in self._there)
        return View(b"".join(self._pieces), here, there, tuple(stop for _, stop in self._there))


class Reader:
    """Undoes the escapes of JSON and URLs, of those characters that the secrets hold."""

    def __init__(self, secrets: Iterable[bytes] = (), longest: int = 0) -> None:
        known = b"".join(secrets)
        wide = any(byte > 126 or byte < 32 for byte in known)
        quotes = b'"' in known or b"\\" in known
        self._escape = _WIDE if wide else _QUOTES if quotes else _ESCAPE
        self._hints: tuple[bytes, ...] = (b"\\u",) if wide else (b"\\u00",)
        self._hints = (b"\\",) if quotes else (*self._hints, b"\\/")
        self._reach = max(1024, longest)

    def unescaped(self, data: bytes) -> list[View]:
        """The parts of the data that hold escapes, as far around each as a secret reaches."""
        if b"%" not in data and (
            b"\\" not in data or not any(hint in data for hint in self._hints)
        ):
            return []
        views, near = list[View](), list[re.Match[bytes]]()
        for match in self._escape.finditer(data):
            if near and match.start() - near[-1].end() > 2 * self._reach:
                views.append(self._around(data, near))
                near = []
            near.append(match)
        return [*views, self._around(data, near)] if near else views

    def _around(self, data: bytes, near: list[re.Match[bytes]]) -> View:
        viewing, start = _Viewing(), max(0, near[0].start() - self._reach)
        viewing.add(data, start, min(len(data), near[-1].end() + self._reach), near)
        return viewing.view()

    def framed(self, data: bytes) -> list[View]:
        """What the events of a stream say bit by bit: for each field, its texts joined."""
        views: dict[bytes, _Viewing] = {}
        for match in _FIELD.finditer(data):
            start, stop = match.span(2)
            viewing = views.setdefault(match[1], _Viewing())
            viewing.add(data, start, stop, self._escape.finditer(data, start, stop))
        return [view for each in views.values() if (view := each.view()).text]

    def whole(self, data: bytes) -> View:
        """All of the data with its escapes undone."""
        viewing = _Viewing()
        viewing.add(data, 0, len(data), self._escape.finditer(data))
        return viewing.view()


def _said(match: re.Match[bytes]) -> bytes:
    unicode, plain, percent = match.groups()
    if plain is not None:
        return bytes(plain)
    if percent is not None:
        return bytes((int(percent, 16),))
    return chr(int(unicode, 16)).encode("utf-8", "surrogatepass")


def cut_escape(data: bytes) -> int:
    """Where an escape begins that the end of the data cuts; len(data) if none does."""
    if (match := _CUT.search(data, max(0, len(data) - 16))) is not None:
        return match.start()
    return len(data)


@dataclass(frozen=True, slots=True)
class Needle:
    """One text to search; `shift` is the place in a group of base64, None outside it."""

    text: bytes
    secret: bytes
    shift: int | None = None

    @property
    def anchor(self) -> bytes:
        """The longest run of token characters: where that is not, the needle is not."""
        runs = re.finditer(rb"a+", self.text.translate(MARKS))
        longest = max(runs, key=lambda run: run.end() - run.start(), default=None)
        best = self.text[longest.start() : longest.end()] if longest else b""
        return best if len(best) >= RUN else b""


def needles(secret: bytes) -> Iterator[Needle]:
    """What to search for one secret, in a text whose escapes are undone."""
    yield Needle(secret, secret)
    if b" " in secret:
        yield Needle(secret.replace(b" ", b"+"), secret)
    for shift in range(3):
        bits = 8 * (shift + len(secret))
        core = b64encode(bytes(shift) + secret)[_SKIP[shift] : bits // 6]
        yield Needle(core, secret, shift)
        if (safe := core.translate(_URL_SAFE)) != core:
            yield Needle(safe, secret, shift)


def in_base64(text: bytes, at: int, needle: Needle, instead: bytes) -> tuple[int, int, bytes]:
    """Start, stop and new text, for a needle of base64 that was found in `text` at `at`.

    Decoded, it is the old text with `instead` in place of the secret and nothing else changed.
    """
    shift, stop = needle.shift or 0, at + len(needle.text)
    first = at - 1 if shift and at and _BASE64.match(text, at - 1) else at
    mixed = 8 * (shift + len(needle.secret)) % 6
    last = stop + 1 if mixed and _BASE64.match(text, stop) else stop
    lead = _SKIP[shift] - (at - first)
    region = b"A" * lead + text[first:last].translate(_STANDARD)
    region += b"A" * (-len(region) % 4)
    plain = b64decode(region)
    bent = plain[:shift] + instead + plain[shift + len(needle.secret) :]
    said = b64encode(bent)[lead : lead + last - first]
    url_safe = any(byte in text[first:last] for byte in b"-_")
    return first, last, said.translate(_URL_SAFE) if url_safe else said
