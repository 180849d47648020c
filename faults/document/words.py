"""Dates, ids and numbers in plain text, each where it stands.

Own patterns rather than a date library: what has to be recognised is what tools print, and a
library that also reads `may`, `10` or `12.5` as dates would find them everywhere.
"""

import re
from collections.abc import Iterator

from faults.document.nodes import Inner, Kind, Node
from faults.query import Path

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
DATE = re.compile(
    r"(?<![\w.\-/])(?:"
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{4}/\d{2}/\d{2}"
    r"|\d{1,2}/\d{1,2}/\d{4}"
    r"|\d{1,2}\.\d{1,2}\.\d{4}"
    rf"|\d{{1,2}} {_MONTH} \d{{4}}"
    rf"|{_MONTH} \d{{1,2}}, \d{{4}}"
    r")(?![\w/]|[.\-]\d)"
)
ID = re.compile(
    r"(?<![\w.\-/])(?=[\w\-]*[A-Za-z])(?=[\w\-]*\d)[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*(?!\w)"
)
# A number that stands alone: not part of an id, a date, a time, a version or a longer word.
_DIGITS = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
NUMBER = re.compile(rf"(?<![\w.\-/#+])(?<!\d[:,]){_DIGITS}(?![\w\-/]|[:.,]\d)")
_NUMBER = re.compile(_DIGITS)


def kind(text: str) -> Kind:
    """What a text is as a whole."""
    if DATE.fullmatch(text):
        return "date"
    if _NUMBER.fullmatch(text):
        return "number"
    return "id" if ID.fullmatch(text) else "text"


def words(inner: Inner, path: Path, start: int = 0, stop: int | None = None) -> Iterator[Node]:
    """The dates, ids and numbers that stand alone in a part of a text."""
    text = inner.text[: len(inner.text) if stop is None else stop]
    taken = start
    found = sorted(
        (match.start(), order, match.end(), what)
        for order, (what, pattern) in enumerate(_PATTERNS)
        for match in pattern.finditer(text, start)
    )
    for at, _, end, what in found:
        if at >= taken:
            taken = end
            yield Node(
                kind=what,
                path=path,
                start=inner.spot(at),
                stop=inner.spot(end),
                said=text[at:end],
                quoted=inner.quoted,
                whole=False,
            )


_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("date", DATE),
    ("id", ID),
    ("number", NUMBER),
)
