"""Atoms: the smallest things a text says, in one form, so that they can be found again.

Numbers lose separators and trailing zeros, whatever form they are written in, dates become ISO
days, ids and strings are casefolded and their blanks folded. JSON inside strings is opened. The
same extractor runs over JSON and over free text, and dates and ids are masked before numbers are
read.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

import orjson

from faults.judging.number_forms import plain_numbers

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"(?i:{'|'.join(_MONTHS)})[a-z]*\.?"
_TOKEN = re.compile(
    r"(?P<day>\b\d{4}-\d{2}-\d{2}"
    r"(?:[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?)"
    rf"|(?P<words>\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH},? \d{{4}}\b"
    rf"|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b)"
    r"|(?P<slashed>\b\d{1,2}([./])\d{1,2}\4\d{4}\b)"
    r"|(?P<id>\b(?=[\w-]*[A-Za-z])(?=[\w-]*\d)[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*\b)"
    r"|(?P<number>(?<![\w.])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)"
    r"|(?<![\w.])-?\d+(?:\.\d+)?(?!\w))"
)
_BLANKS = re.compile(r"\s+")
SHORT = 1 << 12
"""Characters up to which the atoms of a text are kept: the same few are said again and again."""


def atoms(text: str) -> frozenset[str]:
    """The atoms of a text: `n:1250.4`, `d:2026-11-21`, `i:ord-7314`, `s:shipped`."""
    return _kept(text) if len(text) <= SHORT else frozenset(_of_text(text))


@lru_cache(maxsize=1 << 14)
def _kept(text: str) -> frozenset[str]:
    return frozenset(_of_text(text))


def mask_values(text: str, hidden: tuple[str, ...] = ()) -> str:
    """The form of a text: `#` in the place of each number, day, id and hidden text."""
    for each in hidden:
        text = text.replace(each, "#")
    folded = _TOKEN.sub("#", plain_numbers(text)).casefold()
    return _BLANKS.sub(" ", folded).strip(" .!?:;,*_\"'()。！？،؟")


class Leaf(NamedTuple):
    """One value of a JSON text, as it is said there, and where it stands."""

    path: str
    """Names and numbers, joined by points."""
    said: str
    kind: Literal["text", "number", "other"]

    @property
    def name(self) -> str:
        """What the value is called: the last name on its path."""
        return next((n for n in reversed(self.path.split(".")) if n and not n.isdecimal()), "")


def leaves(text: str) -> tuple[Leaf, ...]:
    """The values of a JSON text, that in strings opened; none of other text."""
    return tuple(_leaves(_container(text), ""))


def _leaves(value: object, path: str) -> Iterator[Leaf]:
    match value:
        case dict():
            for name, item in value.items():
                yield from _leaves(item, f"{path}.{name}")
        case list():
            for place, item in enumerate(value):
                yield from _leaves(item, f"{path}.{place}")
        case str():
            inner = _container(value)
            if inner is None:
                yield Leaf(path[1:], value, "text")
            else:
                yield from _leaves(inner, path)
        case bool() | None:
            if path:
                yield Leaf(path[1:], orjson.dumps(value).decode(), "other")
        case _:
            yield Leaf(path[1:], str(value), "number")


def pairs(text: str) -> frozenset[str]:
    """What a JSON text says of each of its fields: `lines.0.paid=true`; none of other text.

    Where a value stands counts here, so that two that changed places can be told. JSON inside
    strings is opened, and an object of one field around the rest (`{"output": ...}`), as clients
    put it there, is no part of where a value stands.
    """
    value: object = text
    while (inner := _inner(value)) is not None:
        value = inner
    return frozenset(_pairs(value, "")) if isinstance(value, dict | list) else frozenset()


def _inner(value: object) -> object:
    """What a text or an object of one field holds, if that is a container; else None."""
    match value:
        case str():
            return _container(value)
        case dict() if len(value) == 1:
            (only,) = value.values()
            return only if isinstance(only, dict | list) else _inner(only)
        case _:
            return None


def _container(text: str) -> object:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _pairs(value: object, path: str) -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                yield from _pairs(item, f"{path}.{name}")
        case list():
            for place, item in enumerate(value):
                yield from _pairs(item, f"{path}.{place}")
        case str() if (inner := _container(value)) is not None:
            yield from _pairs(inner, path)
        case int() | float() if not isinstance(value, bool):
            yield f"{path[1:]}={number(str(value))[2:]}"
        case _:
            yield f"{path[1:]}={orjson.dumps(value).decode()}"


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
    for found in _TOKEN.finditer(plain_numbers(text)):
        said = found[0]
        match found.lastgroup:
            case "number":
                yield number(said)
            case "id":
                yield f"i:{said.casefold()}"
            case "day":
                yield f"d:{said[:10]}"
                if len(said) > 10:
                    yield f"d:{said.replace(' ', 'T')}"
            case "words":
                yield from _in_words(said)
            case _:
                yield from _slashed(said)


def _in_words(said: str) -> Iterator[str]:
    """The day that a date with the name of its month means."""
    month = next(n for n, name in enumerate(_MONTHS, 1) if name in said.lower())
    day, year = (int(digits) for digits in re.findall(r"\d+", said))
    yield f"d:{year}-{month:02}-{day:02}"


def _slashed(said: str) -> Iterator[str]:
    """The days that a date in numbers can mean: which of the first two is the month is unsaid."""
    one, two, year = (int(digits) for digits in re.split(r"[./]", said))
    for day, month in {(one, two), (two, one)}:
        if 1 <= month <= 12 and 1 <= day <= 31:
            yield f"d:{year}-{month:02}-{day:02}"


def number(text: str) -> str:
    """A number in its one form: no separators, no trailing zeros, no exponent."""
    value = Decimal(text.replace(",", ""))
    plain = format(value, "f")
    return "n:" + (plain.rstrip("0").rstrip(".") if "." in plain else plain)
