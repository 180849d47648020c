"""Value tokens: the values in a text in a normal form, so that they can be compared.

Numbers lose separators and trailing zeros, whatever their written form, dates become ISO days, ids
and strings are casefolded with whitespace collapsed. JSON inside strings is parsed. The same
extractor runs over JSON and over free text, and dates and ids are matched before numbers.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

import orjson

from faults.judging.number_forms import normalize_numbers

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
MAX_CACHED_CHARS = 1 << 12
"""Maximum length of the texts of which many are cached: the same texts recur often."""


def extract_tokens(text: str) -> frozenset[str]:
    """Return the tokens of a text: `n:1250.4`, `d:2026-11-21`, `i:ord-7314`, `s:shipped`."""
    return (_cached_tokens if len(text) <= MAX_CACHED_CHARS else _cached_tokens_of_long)(text)


@lru_cache(maxsize=1 << 14)
def _cached_tokens(text: str) -> frozenset[str]:
    return frozenset(_tokens_of_text(text))


@lru_cache(maxsize=4)
def _cached_tokens_of_long(text: str) -> frozenset[str]:
    """One verdict asks for a long result about ten times, at a second for each megabyte."""
    return frozenset(_tokens_of_text(text))


def mask_values(text: str, hidden: tuple[str, ...] = ()) -> str:
    """Return the form of a text: `#` in place of each number, date, id and hidden text."""
    for each in hidden:
        text = text.replace(each, "#")
    folded = _TOKEN.sub("#", normalize_numbers(text)).casefold()
    return _BLANKS.sub(" ", folded).strip(" .!?:;,*_\"'()。！？،؟")


class JsonLeaf(NamedTuple):
    """One value of a JSON text, as written, with its path."""

    path: str
    """Names and indices, joined by points."""
    value: str
    kind: Literal["text", "number", "other"]

    @property
    def name(self) -> str:
        """The name of the value: the last name in its path."""
        return next((n for n in reversed(self.path.split(".")) if n and not n.isdecimal()), "")

    @property
    def list_name(self) -> str:
        """The name of the innermost list that holds the value; empty if there is none."""
        names = self.path.split(".")
        at = next((i for i in range(len(names) - 1, 0, -1) if names[i].isdecimal()), 0)
        return names[at - 1] if at else ""


def find_json_leaves(text: str) -> tuple[JsonLeaf, ...]:
    """Return the values of a JSON text, with JSON in strings parsed; empty for other text."""
    return tuple(_walk_json_leaves(_parse_container(text), ""))


def _walk_json_leaves(value: object, path: str) -> Iterator[JsonLeaf]:
    match value:
        case dict():
            for name, item in value.items():
                yield from _walk_json_leaves(item, f"{path}.{name}")
        case list():
            for place, item in enumerate(value):
                yield from _walk_json_leaves(item, f"{path}.{place}")
        case str():
            inner = _parse_container(value)
            if inner is None:
                yield JsonLeaf(path[1:], value, "text")
            else:
                yield from _walk_json_leaves(inner, path)
        case bool() | None:
            if path:
                yield JsonLeaf(path[1:], orjson.dumps(value).decode(), "other")
        case _:
            yield JsonLeaf(path[1:], str(value), "number")


def extract_field_pairs(text: str) -> frozenset[str]:
    """Return the fields of a JSON text as `lines.0.paid=true`; empty for other text.

    The path is included, so that two exchanged values can be detected. JSON inside strings is
    parsed, and a wrapping object with one field (`{"output": ...}`), as added by clients, is not
    part of the path.
    """
    value: object = text
    while (inner := _unwrap_container(value)) is not None:
        value = inner
    return (
        frozenset(_walk_field_pairs(value, "")) if isinstance(value, dict | list) else frozenset()
    )


def _unwrap_container(value: object) -> object:
    """Return the container in a text or in an object with one field; else None."""
    match value:
        case str():
            return _parse_container(value)
        case dict() if len(value) == 1:
            (only,) = value.values()
            return only if isinstance(only, dict | list) else _unwrap_container(only)
        case _:
            return None


def _parse_container(text: str) -> object:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _walk_field_pairs(value: object, path: str) -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                yield from _walk_field_pairs(item, f"{path}.{name}")
        case list():
            for place, item in enumerate(value):
                yield from _walk_field_pairs(item, f"{path}.{place}")
        case str() if (inner := _parse_container(value)) is not None:
            yield from _walk_field_pairs(inner, path)
        case int() | float() if not isinstance(value, bool):
            yield f"{path[1:]}={to_number_token(str(value))[2:]}"
        case _:
            yield f"{path[1:]}={orjson.dumps(value).decode()}"


def _tokens_of_text(text: str) -> Iterator[str]:
    stripped = text.strip()
    if stripped[:1] in ("{", "[", '"'):
        try:
            yield from _tokens_of_value(orjson.loads(stripped))
            return
        except ValueError:
            pass
    yield from _tokens_of_words(text)


def _tokens_of_value(value: object) -> Iterator[str]:
    match value:
        case bool() | None:
            return
        case int() | float():
            yield to_number_token(str(value))
        case str():
            if value.lstrip()[:1] in ("{", "["):
                yield from _tokens_of_text(value)
            else:
                yield from _tokens_of_words(value)
                folded = _BLANKS.sub(" ", value).strip().casefold()
                if len(folded) >= 4:
                    yield f"s:{folded}"
        case list():
            for item in value:
                yield from _tokens_of_value(item)
        case dict():
            for item in value.values():
                yield from _tokens_of_value(item)


def _tokens_of_words(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(normalize_numbers(text)):
        matched = match[0]
        match match.lastgroup:
            case "number":
                yield to_number_token(matched)
            case "id":
                yield f"i:{matched.casefold()}"
            case "day":
                yield f"d:{matched[:10]}"
                if len(matched) > 10:
                    yield f"d:{matched.replace(' ', 'T')}"
            case "words":
                yield from _parse_named_date(matched)
            case _:
                yield from _parse_numeric_date(matched)


def _parse_named_date(text: str) -> Iterator[str]:
    """Yield the day of a date with a month name."""
    month = next(n for n, name in enumerate(_MONTHS, 1) if name in text.lower())
    day, year = (int(digits) for digits in re.findall(r"\d+", text))
    yield f"d:{year}-{month:02}-{day:02}"


def _parse_numeric_date(text: str) -> Iterator[str]:
    """Yield the possible days of a numeric date: the order of day and month is unknown."""
    one, two, year = (int(digits) for digits in re.split(r"[./]", text))
    for day, month in {(one, two), (two, one)}:
        if 1 <= month <= 12 and 1 <= day <= 31:
            yield f"d:{year}-{month:02}-{day:02}"


def to_number_token(text: str) -> str:
    """Return a number in its normal form: no separators, no trailing zeros, no exponent."""
    value = Decimal(text.replace(",", ""))
    plain = format(value, "f")
    return "n:" + (plain.rstrip("0").rstrip(".") if "." in plain else plain)


def find_empty_lists(text: str) -> tuple[str, ...]:
    """Return the paths of the empty lists and objects of a JSON text; `` is the text itself."""
    return tuple(_walk_empty_lists(_parse_container(text), ""))


def _walk_empty_lists(value: object, path: str) -> Iterator[str]:
    match value:
        case {} | [] if not value:
            yield path[1:]
        case dict():
            for name, item in value.items():
                yield from _walk_empty_lists(item, f"{path}.{name}")
        case list():
            for place, item in enumerate(value):
                yield from _walk_empty_lists(item, f"{path}.{place}")
        case str() if (inner := _parse_container(value)) is not None:
            yield from _walk_empty_lists(inner, path)
