"""Spans that keep JSON's escapes whole, so that what parsed as JSON before parses after.

A backslash and its letter are one character, at any depth of strings within strings: a placeholder
that began after the backslash would be an escape that does not exist. Whether a text is JSON is
not asked, as a chunk of a stream does not show it; in any other text, such as a Windows path, a
span loses at most its first letter.
"""

import re

_BACKSLASH = ord("\\")
_LETTER = re.compile(
    rb"(?:u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[nrtbfu/\"\\])"
)
"""What a backslash escapes; a pair of surrogates is one character."""
_CUT_ESCAPE = re.compile(rb"\\+(?:u[0-9a-fA-F]{0,3})?\Z")
_HALF_PAIR = re.compile(rb"\\+u[dD][89abAB][0-9a-fA-F]{2}\Z")
_SECOND_HALF = re.compile(rb"\\+u[dD][c-fC-F][0-9a-fA-F]{2}")
_REACH = 40
"""Bytes of an escape that is itself escaped several times."""


def keep_escapes_whole(data: bytes, start: int, stop: int) -> tuple[int, int]:
    """Return the span without the parts of escapes that begin before it or end after it.

    A run of backslashes that begins before the span belongs to it; the span may be empty then.
    """
    first = start
    while first and data[first - 1] == _BACKSLASH:
        first -= 1
    if first < start:
        if data[start] == _BACKSLASH:
            start = first
        elif match := _LETTER.match(data, start):
            start = match.end()
    return start, _end_after_escape(data, start, stop)


def _end_after_escape(data: bytes, start: int, stop: int) -> int:
    near = max(start, stop - _REACH)
    if cut := _CUT_ESCAPE.search(data, near, stop):
        if data[stop - 1] == _BACKSLASH:
            return cut.start()
        stop = cut.start() + len(cut[0].rstrip(b"u0123456789abcdefABCDEF")) + len("u0000")
    if _HALF_PAIR.search(data, near, stop) and (rest := _SECOND_HALF.match(data, stop)):
        stop = rest.end()
    return min(stop, len(data))
