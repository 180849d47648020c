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
