"""Decoding of JSON and URL escapes, and of texts split into events.

Escapes are decoded into an offset map, a text with the original offset of each byte, so one search
covers any mix of them (`sk\\u002d`, `sk%2D`, `sk%252d`, `\\\\/`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from traces.redaction.detection.prefilter import BACKSLASH, EVERYTHING, PERCENT, WIDE
from traces.redaction.offset_map import OffsetMap, OffsetMapBuilder

# Each begins with one set of two characters, so that the search can skip to them.
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
_BACK, _PER = b"\\%"  # an int is searched faster than bytes
_CUT = re.compile(rb"(?:\\+(?:u[0-9a-fA-F]{0,3})?|%[0-9a-fA-F]{0,4})\Z")
_FIELD = re.compile(
    rb'"(content|text|delta|arguments|partial_json|thinking|reasoning_content|reasoning)"'
    rb'\s*:\s*"((?:[^"\\]|\\.)*+)"'
)
"""The fields in which the dialects stream text, in fragments per event."""


class EscapeDecoder:
    """Decodes the JSON and URL escapes of the characters that the secrets contain."""

    def __init__(self, secrets: Iterable[bytes] = (), longest: int = 0) -> None:
        secret_bytes = b"".join(secrets)
        wide = any(byte > 126 or byte < 32 for byte in secret_bytes)
        quotes = b'"' in secret_bytes or b"\\" in secret_bytes
        self._escape = _WIDE if wide else _QUOTES if quotes else _ESCAPE
        self._percent = _WIDE_PERCENT if wide else _PERCENT
        # All of them begin with a backslash, so that the search can skip to it.
        self._hint = None if quotes else re.compile(rb"\\(?:u|/)" if wide else rb"\\(?:u00|/)")
        self._backslash_sign = WIDE if wide else BACKSLASH
        self._signs = WIDE if wide else PERCENT | BACKSLASH
        self._reach = max(1024, longest)

    def has_escapes(self, data: bytes, possible: int) -> bool:
        """False if the data certainly contains no relevant escape; `possible` is what the
        prefilter found in it."""
        return bool(possible & self._signs) or (self._hint is None and _BACK in data)

    def _iter_escapes(self, data: bytes, possible: int = EVERYTHING) -> Iterator[re.Match[bytes]]:
        if self._hint is None:
            return self._escape.finditer(data)
        matches = list(self._iter_percent_escapes(data))
        if possible & self._backslash_sign and (
            backslashed := list(self._iter_hinted_escapes(data, self._hint))
        ):
            matches = sorted([*matches, *backslashed], key=re.Match.start)
        return iter(matches)

    def _iter_percent_escapes(self, data: bytes) -> Iterator[re.Match[bytes]]:
        at = data.find(_PER)  # much faster than a search for the pattern
        while at >= 0:
            match = self._percent.match(data, at)
            if match:
                yield match
            at = data.find(_PER, match.end() if match else at + 1)

    def _iter_hinted_escapes(
        self, data: bytes, hint: re.Pattern[bytes]
    ) -> Iterator[re.Match[bytes]]:
        """Yield the escapes that contain such a hint: most backslashes begin another escape."""
        hint_match = hint.search(data)
        while hint_match is not None:
            start, stop = hint_match.start(), hint_match.start() + 1
            while start and data[start - 1] == _BACK:
                start -= 1
            if match := self._escape.match(data, start):
                stop = match.end()
                yield match
            hint_match = hint.search(data, stop)

    def unescape_parts(self, data: bytes, possible: int = EVERYTHING) -> list[OffsetMap]:
        """Decode the parts of the data with escapes, and as much around each as a secret is
        long."""
        views, group = list[OffsetMap](), list[re.Match[bytes]]()
        for match in self._iter_escapes(data, possible):
            if group and match.start() - group[-1].end() > 2 * self._reach:
                views.append(self._unescape_around(data, group))
                group = []
            group.append(match)
        return [*views, self._unescape_around(data, group)] if group else views

    def _unescape_around(self, data: bytes, near: list[re.Match[bytes]]) -> OffsetMap:
        builder, start = OffsetMapBuilder(), max(0, near[0].start() - self._reach)
        builder.add_text(data, start, min(len(data), near[-1].end() + self._reach), near)
        return builder.build()

    def join_event_texts(
        self, data: bytes, before: Mapping[bytes, bytes]
    ) -> dict[bytes, OffsetMap]:
        """Join the text fragments that the events of a stream deliver, by the name of the field.

        `before` is the end of what earlier events delivered; its offsets are negative.
        """
        builders: dict[bytes, OffsetMapBuilder] = {}
        for match in _FIELD.finditer(data):
            start, stop = match.span(2)
            if (builder := builders.get(match[1])) is None:
                builder = builders[match[1]] = OffsetMapBuilder()
                builder.add_earlier_text(before.get(match[1], b""))
            builder.add_text(data, start, stop, self._escape.finditer(data, start, stop))
        return {name: view for name, each in builders.items() if (view := each.build()).text}

    def join_plain_event_texts(
        self, data: bytes, before: Mapping[bytes, bytes]
    ) -> dict[bytes, bytes]:
        """Join the texts as `join_event_texts` does, of data without escapes."""
        texts = dict[bytes, list[bytes]]()
        for name, text in _FIELD.findall(data):
            if text:
                texts.setdefault(name, [before.get(name, b"")]).append(text)
        return {name: b"".join(parts) for name, parts in texts.items()}

    def unescape_all(self, data: bytes) -> OffsetMap:
        """Decode all escapes of the data."""
        builder = OffsetMapBuilder()
        builder.add_text(data, 0, len(data), self._iter_escapes(data))
        return builder.build()


def find_cut_escape(data: bytes) -> int:
    """Return the offset of an escape that the end of the data cuts; len(data) if none."""
    end = data[-16:]
    if (_BACK in end or _PER in end) and (match := _CUT.search(end)) is not None:
        return len(data) - len(end) + match.start()
    return len(data)
