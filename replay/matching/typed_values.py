"""Recognise values that change from run to run by form: a day, a clock, an id, a number, a path.

A text is split into such values and the text between them. Two texts that differ only in values,
each pair of the same type, may be equivalent; for any others this is unknown.
"""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from copy import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Literal, get_args

from msgspec import Struct

type ValueType = Literal["day", "clock", "uuid", "pid", "port", "path", "counter", "signature"]
VALUE_TYPES: tuple[ValueType, ...] = get_args(ValueType.__value__)

_MONTH_PREFIXES = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_MONTH_PATTERN = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_WEEKDAY_PREFIXES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WEEKDAY = r"(?:Mon|Tue(?:s)?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_DATE_PATTERN = (
    rf"(?:(?:{_WEEKDAY},? )?(?:{_MONTH_PATTERN}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? {_MONTH_PATTERN},? \d{{4}})"
    r"|\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{4})"
    rf"(?: \({_WEEKDAY}\)|,? {_WEEKDAY}(?![0-9A-Za-z]))?"
)
_TIME_PATTERN = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?[AaPp]\.?[Mm]\b\.?)?"
_ZONE = r"(?: ?Z\b| ?[+-]\d\d:?\d\d\b| UTC\b| GMT\b)?"
_EPOCH_PATTERN = r"1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?"
_EDGE = r"(?<![0-9A-Za-z.])(?:%s)(?![0-9A-Za-z]|\.\d)"
_UNIT = r"(?:[num\u00b5]?s|secs?|m|mins?|h|[kKMG]i?B?|B)"
"""What may follow a number at once; it does not belong to the value, and has to be equal."""
_TYPE_PATTERNS: dict[ValueType, str] = {
    "uuid": _EDGE
    % (
        r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
        r"|(?=\d*[A-Fa-f])(?=[A-Fa-f]*\d)[0-9A-Fa-f]{8,}"
        r"|(?=(?:[A-Za-z]*\d){2})(?=(?:\d*[A-Za-z]){2})[0-9A-Za-z]{16,}"
        r"|(?=(?:[A-Za-z_-]*\d){2})(?=(?:[a-z\d_-]*[A-Z]){2})(?=(?:[A-Z\d_-]*[a-z]){2})"
        r"[0-9A-Za-z_-]{20,}"
    ),
    "clock": _EDGE
    % (
        rf"(?:{_DATE_PATTERN})(?:T|,? (?:at "
        rf")?){_TIME_PATTERN}{_ZONE}|\d{{8}}[T_-]\d{{6}}Z?|{_TIME_PATTERN}{_ZONE}|{_EPOCH_PATTERN}"
    ),
    "day": _EDGE % rf"{_DATE_PATTERN}|{_WEEKDAY}|{_MONTH_PATTERN}",
    "path": r"(?<![\w:/.])[~/][^\s\"'<>|:;,()\[\]{}`*?\\]+",
    "port": _EDGE % r"\d{2,5}",
    "pid": _EDGE % r"\d{1,7}",
    "counter": rf"(?<![0-9A-Za-z.])\d+(?:\.\d+)?(?={_UNIT}?(?![0-9A-Za-z]|\.\d))",
    "signature": r"(?:REDACTED|RD)[a-z]\d+x*Z",
}
_HEX_ID = r"[0-9A-Fa-f]{8,}"
"""Of 50 random ids of eight hexadecimal digits one has no letter. A rule knows its place, so it
takes them all; in any text, such a value is a number.
"""
_MIXED_ID = r"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])[0-9A-Za-z_-]{20,}"
"""A random id of letters of both cases (nanoid, base64url), of which many have few digits."""
_SCANNED_TYPES: tuple[ValueType, ...] = ("uuid", "clock", "day", "path", "counter")
"""The types that are recognised by their form alone, the narrowest first."""
_SCANNER = "|".join(f"(?P<{kind}>{_TYPE_PATTERNS[kind]})" for kind in _SCANNED_TYPES)
_PROCESS_PREFIX = re.compile(r"(?i)\bp(?:rocess|g?id)\b[^\n]{0,16}\Z")
_PORT_PREFIX = re.compile(r"(?i)(?:\bport\b[^\n]{0,8}|(?:localhost|127\.0\.0\.1|\[::1\]):)\Z")


class TypedValue(Struct, frozen=True):
    """A value in a text."""

    type: ValueType
    start: int
    stop: int
    text: str


def get_type_pattern(type: ValueType) -> str:
    """Return the pattern for the values of a type, in any text."""
    return _TYPE_PATTERNS[type]


@cache
def get_rule_pattern(type: ValueType) -> str:
    """Return the pattern for the values of a type, at the place of a rule."""
    pattern = _TYPE_PATTERNS[type]
    return f"{pattern}|{_EDGE % _HEX_ID}|{_EDGE % _MIXED_ID}" if type == "uuid" else pattern


def find_typed_values(text: str) -> Iterator[TypedValue]:
    """Yield the values in a text that are recognised by their form."""
    for match in re.finditer(_SCANNER, text):
        kind: ValueType = match.lastgroup  # type: ignore[assignment]
        if kind == "counter" and _PORT_PREFIX.search(
            text, max(0, match.start() - 24), match.start()
        ):
            kind = "port"
        elif kind == "counter" and _PROCESS_PREFIX.search(
            text, max(0, match.start() - 32), match.start()
        ):
            kind = "pid"
        yield TypedValue(kind, match.start(), match.end(), match[0])


def pair_differing_values(one: str, two: str) -> list[tuple[TypedValue, TypedValue]] | None:
    """Return the pairs of values in which two texts differ; None if anything else differs."""
    if len(one) == len(two) and all(re.fullmatch(_MIXED_ID, each) for each in (one, two)):
        return [(TypedValue("uuid", 0, len(one), one), TypedValue("uuid", 0, len(two), two))]
    old_values, new_values = list(find_typed_values(one)), list(find_typed_values(two))
    if len(old_values) != len(new_values) or _split_between_values(
        one, old_values
    ) != _split_between_values(two, new_values):
        return None
    differing = [
        _to_same_type(a, b) for a, b in zip(old_values, new_values, strict=True) if a.text != b.text
    ]
    return differing if all(a.type == b.type for a, b in differing) else None


def _to_same_type(one: TypedValue, two: TypedValue) -> tuple[TypedValue, TypedValue]:
    """Return two values as ids if one is, and the other is one without a letter."""
    if one.type == two.type or "uuid" not in (one.type, two.type) or len(one.text) != len(two.text):
        return one, two
    if not (re.fullmatch(_HEX_ID, one.text) and re.fullmatch(_HEX_ID, two.text)):
        return one, two
    return replace(one, type="uuid"), replace(two, type="uuid")


def _split_between_values(text: str, found: list[TypedValue]) -> list[str]:
    starts = [0, *(each.stop for each in found)]
    stops = [*(each.start for each in found), len(text)]
    return [text[start:stop] for start, stop in zip(starts, stops, strict=True)]


_WEST, _EAST = timedelta(hours=-12), timedelta(hours=14)
_ISO = re.compile(r"(\d{4})[-/.]?(\d{1,2})[-/.]?(\d{1,2})")
_NUMBERS = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})")
_NAMED_DATE = re.compile(
    rf"(?i)(?P<month>{_MONTH_PATTERN})|(?P<year>\b\d{{4}}\b)|(?P<day>\b\d{{1,2}})(?!\d)"
)


def parse_possible_days(text: str) -> set[date]:
    """Return the days that a day or clock can mean; none for a time of day or a single word.

    A weekday beside the date has to be that of the day.
    """
    weekday = re.search(rf"(?<![A-Za-z]){_WEEKDAY}(?![A-Za-z])", text)
    days = _parse_dates(text)
    return {
        each
        for each in days
        if weekday is None or _WEEKDAY_PREFIXES[each.weekday()] == weekday[0][:3]
    }


def _parse_dates(text: str) -> set[date]:
    if re.fullmatch(_EPOCH_PATTERN, text):
        digits = text.partition(".")[0]
        seconds = int(digits) / 10 ** (len(digits) - 10)
        return {datetime.fromtimestamp(seconds, UTC).date()}
    if match := _NUMBERS.match(text):
        first, second, year = map(int, match.groups())
        return set(_make_valid_dates((year, first, second), (year, second, first)))
    if match := _ISO.match(text):
        year, month, day = map(int, match.groups())
        return set(_make_valid_dates((year, month, day)))
    parts = {each.lastgroup: each[0] for each in reversed(list(_NAMED_DATE.finditer(text)))}
    if len(parts) < 3:
        return set()
    month = _MONTH_PREFIXES.index(parts["month"][:3].lower()) + 1
    return set(_make_valid_dates((int(parts["year"]), month, int(parts["day"]))))


def _make_valid_dates(*each: tuple[int, int, int]) -> Iterator[date]:
    for year, month, day in each:
        try:
            yield date(year, month, day)
        except ValueError:
            continue


def list_days_on_earth(at: float) -> AbstractSet[date]:
    """Return the dates that are current anywhere on Earth, at some seconds since the epoch."""
    now = datetime.fromtimestamp(at, UTC)
    return {(now + _WEST).date(), now.date(), (now + _EAST).date()}
