"""Find dates, ids and numbers in plain text, with their offsets.

The patterns match the formats that tools print. A date library that also parses `may`, `10` or
`12.5` as dates would find dates everywhere.
"""

import re
from collections.abc import Iterator

from faults.document.nodes import DocumentNode, NestedText, NodeKind
from faults.jsonpath import JsonLocation

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
# A number on its own: not part of an id, a date, a time, a version or a longer word.
_DIGITS = r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
NUMBER = re.compile(rf"(?<![\w.\-/#+])(?<!\d[:,]){_DIGITS}(?![\w\-/]|[:.,]\d)")
_NUMBER = re.compile(_DIGITS)


def classify_plain_value(text: str) -> NodeKind:
    """Return the kind of a complete text."""
    if DATE.fullmatch(text):
        return "date"
    if _NUMBER.fullmatch(text):
        return "number"
    return "id" if ID.fullmatch(text) else "text"


def find_plain_values(
    inner: NestedText, path: JsonLocation, start: int = 0, stop: int | None = None
) -> Iterator[DocumentNode]:
    """Yield the separate dates, ids and numbers in a part of a text."""
    text = inner.text[: len(inner.text) if stop is None else stop]
    end_of_last = start
    matches = sorted(
        (match.start(), order, match.end(), kind)
        for order, (kind, pattern) in enumerate(_PATTERNS)
        for match in pattern.finditer(text, start)
    )
    for at, _, end, kind in matches:
        if at >= end_of_last:
            end_of_last = end
            yield DocumentNode(
                kind=kind,
                path=path,
                start=inner.to_outer_offset(at),
                stop=inner.to_outer_offset(end),
                text=text[at:end],
                quote_depth=inner.quote_depth,
                is_whole=False,
            )


_PATTERNS: tuple[tuple[NodeKind, re.Pattern[str]], ...] = (
    ("date", DATE),
    ("id", ID),
    ("number", NUMBER),
)
