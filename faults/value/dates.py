"""V9: a wrong date."""

import re
from calendar import monthrange
from datetime import date, timedelta
from random import Random
from typing import Annotated, Literal

from faults.body import NoSite, text, with_text
from faults.document import Node, read
from faults.operator import Between, JsonPath, operator
from faults.value.picks import chosen, rewritten
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
    days: Annotated[int, Between(-3660, 3660)] = 1,
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Shift one date and keep its form.

    Incident: a time zone, the switch to summer time, a locale. `day` shifts it by so many
    `days`, `year` by one year, `swap` exchanges day and month, `zone` sets the offset of a
    moment to another one. Seconds since 1970 under a name like `created_at` are dates too.
    The date is all that is made up.
    """
    document = read(text(exchange))
    found = [node for node in document.nodes(path) if node.kind == "date" or _epoch(node)]
    sites = [
        (node, said) for node in found if (said := _shifted(node, how, days)) not in ("", node.said)
    ]
    if not found:
        raise NoSite("there is no date in the result")
    node, said = chosen(rng, sites, f"date that {how} could shift")
    return with_text(exchange, rewritten(document, node, said))


def _epoch(node: Node) -> bool:
    if node.kind != "number" or not _TIME.search(node.name):
        return False
    return re.fullmatch(r"1\d{9}(?:\d{3})?(?:\.\d+)?", node.said) is not None


def _shifted(node: Node, how: str, days: int) -> str:
    """The date as another, in the form it has; empty where that cannot be."""
    said = node.said
    if node.kind == "number":
        whole, point, part = said.partition(".")
        unit = 86_400_000 if len(whole) == 13 else 86_400
        by = {"day": days * unit, "year": 365 * unit, "zone": unit // 24}.get(how, 0)
        return f"{int(whole) + by}{point}{part}"
    if how == "zone":
        return _rezoned(said)
    places = _parts(said)
    try:
        was = date(*(int(value) for value, _, _ in places))
        now = _other(was, how, days)
    except (ValueError, OverflowError):
        return ""
    return _written(said, places, now)


def _other(was: date, how: str, days: int) -> date:
    match how:
        case "day":
            return was + timedelta(days)
        case "swap":
            return was.replace(month=was.day, day=was.month)
        case _:
            year = was.year - 1
            return was.replace(year=year, day=min(was.day, monthrange(year, was.month)[1]))


type _Part = tuple[str, int, int]


def _parts(said: str) -> tuple[_Part, _Part, _Part]:
    """Year, month and day, each with its place; of `4/5/2026` the month is said first."""
    if named := _NAMED.search(said):
        month = str(1 + [name[:3] for name in _MONTHS.split()].index(named[0][:3]))
        numbers = list(re.finditer(r"\d+", said))
        year = next(n for n in numbers if len(n[0]) == 4)
        day = next(n for n in numbers if n is not year)
        return _part(year), (month, *named.span()), _part(day)
    one, two, three = (_part(n) for n in list(re.finditer(r"\d+", said))[:3])
    if len(one[0]) == 4:
        return one, two, three
    return (three, two, one) if "." in said else (three, one, two)


def _part(found: re.Match[str]) -> _Part:
    return found[0], *found.span()


def _written(said: str, places: tuple[_Part, _Part, _Part], now: date) -> str:
    values = (now.year, now.month, now.day)
    padded = not _NAMED.search(said) or re.search(r"\b0", said) is not None
    for (old, start, stop), value in sorted(
        zip(places, values, strict=True), key=lambda each: -each[0][1]
    ):
        if said[start:stop].isdigit():
            new = str(value).zfill(len(old) if padded else 1)
        else:
            name = _MONTHS.split()[value - 1]
            new = name if stop - start > 3 and said[start:stop] != "May" else name[:3]
        said = said[:start] + new + said[stop:]
    return said


def _rezoned(said: str) -> str:
    found = re.search(r"(Z|[+-]\d{2}:?\d{2})\Z", said)
    if found is None or len(said) < 16:
        return ""
    return said[: found.start()] + ("+01:00" if found[0] != "+01:00" else "Z")
