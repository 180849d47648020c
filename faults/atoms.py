"""Atoms: the smallest things a text says, in one form, so that they can be found again.

Numbers lose separators and trailing zeros, dates become ISO days, ids and strings are
casefolded and their blanks folded. JSON inside strings is opened. The same extractor runs over
JSON and over free text, and dates and ids are masked before numbers are read.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

import orjson

_DATE = re.compile(
    r"\b\d{4}-\d{2}-\d{2}"
    r"(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?"
)
_ID = re.compile(r"(?i)\b(?=[\w-]*[a-z])(?=[\w-]*\d)[a-z0-9]+(?:[-_][a-z0-9]+)*\b")
_NUMBER = re.compile(
    r"(?<![\w.])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)"
    r"|(?<![\w.])-?\d+(?:\.\d+)?(?!\w)"
)
_BLANKS = re.compile(r"\s+")


def atoms(text: str) -> frozenset[str]:
    """The atoms of a text: `n:1250.4`, `d:2026-11-21`, `i:ord-7314`, `s:shipped`."""
    return frozenset(_of_text(text))


def _of_text(text: str) -> Iterator[str]:
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"'):
        try:
            yield from _of_value(orjson.loads(stripped))
            return
        except ValueError:
            pass
    yield from _of_words(text)


def _of_value(value: object) -> Iterator[str]:
    match value:
        case bool() | None:
            return
        case int() | float():
            yield number(str(value))
        case str():
            if value.lstrip()[:1] in ("{", "["):
                yield from _of_text(value)
            else:
                yield from _of_words(value)
                folded = _BLANKS.sub(" ", value).strip().casefold()
                if len(folded) >= 4:
                    yield f"s:{folded}"
        case list():
            for item in value:
                yield from _of_value(item)
        case dict():
            for item in value.values():
                yield from _of_value(item)


def _of_words(text: str) -> Iterator[str]:
    for found in _DATE.finditer(text):
        yield f"d:{found[0][:10]}"
        if len(found[0]) > 10:
            yield f"d:{found[0].replace(' ', 'T')}"
    text = _DATE.sub(" ", text)
    for found in _ID.finditer(text):
        yield f"i:{found[0].casefold()}"
    for found in _NUMBER.finditer(_ID.sub(" ", text)):
        yield number(found[0])


def number(text: str) -> str:
    """A number in its one form: no separators, no trailing zeros, no exponent."""
    value = Decimal(text.replace(",", ""))
    plain = format(value, "f")
    return "n:" + (plain.rstrip("0").rstrip(".") if "." in plain else plain)
