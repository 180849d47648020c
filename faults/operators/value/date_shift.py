"""V9 date_shift: a wrong date."""

import re
from calendar import monthrange
from datetime import date, timedelta
from random import Random
from typing import Annotated, Literal

from faults.document import DocumentNode, parse_document
from faults.operator import JsonPath, NumberRange, operator
from faults.operators.value.select_value import choose_one, rewrite_value
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from traces.model import Exchange

_MONTHS = "January February March April May June July August September October November December"
_NAMED = re.compile("|".join(name[:3] + r"\w*" for name in _MONTHS.split()))
_TIME = re.compile(r"(?i)(?:_at|_ts|time|timestamp|date)\Z|At\Z")


@operator("V9", fresh=True)
def date_shift(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal["day", "swap", "year", "zone"] = "day",
    days: Annotated[int, NumberRange(-3660, 3660)] = 1,
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Shift one date and keep its format.

    Incident: a time zone, the switch to summer time, a locale. `day` shifts the date by `days`,
    `year` by one year, `swap` exchanges day and month, `zone` replaces the UTC offset of a time.
    Unix times under a name like `created_at` count as dates. The date is the only fabricated part.
    """
    document = parse_document(decode_response_text(exchange))
    dates = [node for node in document.nodes(path) if node.kind == "date" or _is_epoch_number(node)]
    sites = [
        (node, shifted)
        for node in dates
        if (shifted := _shift_date_text(node, how, days)) not in ("", node.text)
    ]
    if not dates:
        raise NoInjectionSite("there is no date in the result")
    node, shifted = choose_one(rng, sites, f"date that {how} could shift")
    return replace_response_text(exchange, rewrite_value(document, node, shifted))


def _is_epoch_number(node: DocumentNode) -> bool:
    if node.kind != "number" or not _TIME.search(node.name):
        return False
    return re.fullmatch(r"1\d{9}(?:\d{3})?(?:\.\d+)?", node.text) is not None


def _shift_date_text(node: DocumentNode, how: str, days: int) -> str:
    """Return the shifted date in the same format; empty if it cannot be shifted."""
    text = node.text
    if node.kind == "number":
        integer, point, fraction = text.partition(".")
        unit = 86_400_000 if len(integer) == 13 else 86_400
        offset = {"day": days * unit, "year": 365 * unit, "zone": unit // 24}.get(how, 0)
        return f"{int(integer) + offset}{point}{fraction}"
    if how == "zone":
        return _change_utc_offset(text)
    places = _parse_date_parts(text)
    try:
        original = date(*(int(value) for value, _, _ in places))
        shifted = _compute_other_day(original, how, days)
    except (ValueError, OverflowError):
        return ""
    return _write_date_text(text, places, shifted)


def _compute_other_day(was: date, how: str, days: int) -> date:
    match how:
        case "day":
            return was + timedelta(days)
        case "swap":
            return was.replace(month=was.day, day=was.month)
        case _:
            year = was.year - 1
            return was.replace(year=year, day=min(was.day, monthrange(year, was.month)[1]))


type _DatePart = tuple[str, int, int]


def _parse_date_parts(text: str) -> tuple[_DatePart, _DatePart, _DatePart]:
    """Return year, month and day with their offsets; `4/5/2026` begins with the month."""
    if named := _NAMED.search(text):
        month = str(1 + [name[:3] for name in _MONTHS.split()].index(named[0][:3]))
        numbers = list(re.finditer(r"\d+", text))
        year = next(n for n in numbers if len(n[0]) == 4)
        day = next(n for n in numbers if n is not year)
        return _to_date_part(year), (month, *named.span()), _to_date_part(day)
    first, second, third = (_to_date_part(n) for n in list(re.finditer(r"\d+", text))[:3])
    if len(first[0]) == 4:
        return first, second, third
    return (third, second, first) if "." in text else (third, first, second)


def _to_date_part(found: re.Match[str]) -> _DatePart:
    return found[0], *found.span()


def _write_date_text(text: str, places: tuple[_DatePart, _DatePart, _DatePart], now: date) -> str:
    values = (now.year, now.month, now.day)
    padded = not _NAMED.search(text) or re.search(r"\b0", text) is not None
    for (old, start, stop), value in sorted(
        zip(places, values, strict=True), key=lambda each: -each[0][1]
    ):
        if text[start:stop].isdigit():
            new = str(value).zfill(len(old) if padded else 1)
        else:
            name = _MONTHS.split()[value - 1]
            new = name if stop - start > 3 and text[start:stop] != "May" else name[:3]
        text = text[:start] + new + text[stop:]
    return text


def _change_utc_offset(text: str) -> str:
    match = re.search(r"(Z|[+-]\d{2}:?\d{2})\Z", text)
    if match is None or len(text) < 16:
        return ""
    return text[: match.start()] + ("+01:00" if match[0] != "+01:00" else "Z")
