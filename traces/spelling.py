"""How text can be escaped for JSON or a URL, or cut into events, and what it says then.

Escapes are undone in a view, a text that remembers where each of its bytes came from, so any
mix of them is one search (`sk\\u002d`, `sk%2D`, `sk%252d`, `\\\\/`).
"""

import re
from collections.abc import Iterable, Iterator

from traces.view import View, Viewing

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
_PERCENT = re.compile(rb"%(?:25)*([0-7][0-9a-fA-F])")
_WIDE_PERCENT = re.compile(rb"%(?:25)*([0-9a-fA-F]{2})")
_BACK, _PER = b"\\%"  # a byte is found faster than a text
_CUT = re.compile(rb"(?:\\+(?:u[0-9a-fA-F]{0,3})?|%[0-9a-fA-F]{0,4})\Z")
_FIELD = re.compile(
    rb'"(content|text|delta|arguments|partial_json|thinking|reasoning_content|reasoning)"'
    rb'\s*:\s*"((?:[^"\\]|\\.)*+)"'
)
"""The fields in which the dialects stream text, by the pieces that an event brings."""


class Reader:
    """Undoes the escapes of JSON and URLs, of those characters that the secrets hold."""

    def __init__(self, secrets: Iterable[bytes] = (), longest: int = 0) -> None:
        known = b"".join(secrets)
        wide = any(byte > 126 or byte < 32 for byte in known)
        quotes = b'"' in known or b"\\" in known
        self._escape = _WIDE if wide else _QUOTES if quotes else _ESCAPE
        self._percent = _WIDE_PERCENT if wide else _PERCENT
        # All of them begin with a backslash, to which a search skips.
        self._hint = None if quotes else re.compile(rb"\\(?:u|/)" if wide else rb"\\(?:u00|/)")
        self._reach = max(1024, longest)

    def escaped(self, data: bytes) -> bool:
        """False where the data is sure to hold no escape that matters."""
        if _PER in data or (self._hint is None and _BACK in data):
            return True
        return self._hint is not None and self._hint.search(data) is not None

    def _escapes(self, data: bytes) -> Iterator[re.Match[bytes]]:
        if self._hint is None:
            return self._escape.finditer(data)
        found = list(self._percent.finditer(data)) if _PER in data else []
        if back := list(self._hinted(data, self._hint)):
            found = sorted([*found, *back], key=re.Match.start)
        return iter(found)

    def _hinted(self, data: bytes, hint: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
        """The escapes with such a text in them: most backslashes begin another one."""
        near = hint.search(data)
        while near is not None:
            start, stop = near.start(), near.start() + 1
            while start and data[start - 1] == _BACK:
                start -= 1
            if match := self._escape.match(data, start):
                stop = match.end()
                yield match
            near = hint.search(data, stop)

    def unescaped(self, data: bytes) -> list[View]:
        """The parts of the data that hold escapes, as far around each as a secret reaches."""
        views, near = list[View](), list[re.Match[bytes]]()
        for match in self._escapes(data):
            if near and match.start() - near[-1].end() > 2 * self._reach:
                views.append(self._around(data, near))
                near = []
            near.append(match)
        return [*views, self._around(data, near)] if near else views

    def _around(self, data: bytes, near: list[re.Match[bytes]]) -> View:
        viewing, start = Viewing(), max(0, near[0].start() - self._reach)
        viewing.add(data, start, min(len(data), near[-1].end() + self._reach), near)
        return viewing.view()

    def framed(self, data: bytes) -> list[View]:
        """What the events of a stream say bit by bit: for each field, its texts joined."""
        views: dict[bytes, Viewing] = {}
        for match in _FIELD.finditer(data):
            start, stop = match.span(2)
            viewing = views.setdefault(match[1], Viewing())
            viewing.add(data, start, stop, self._escape.finditer(data, start, stop))
        return [view for each in views.values() if (view := each.view()).text]

    def whole(self, data: bytes) -> View:
        """All of the data with its escapes undone."""
        viewing = Viewing()
        viewing.add(data, 0, len(data), self._escapes(data))
        return viewing.view()


def cut_escape(data: bytes) -> int:
    """Where an escape begins that the end of the data cuts; len(data) if none does."""
    end = data[-16:]
    if (_BACK in end or _PER in end) and (match := _CUT.search(end)) is not None:
        return len(data) - len(end) + match.start()
    return len(data)
