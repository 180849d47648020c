"""Tools that only reckon: currencies, timestamps, patterns. They never touch the book."""

import re
from datetime import UTC, datetime, timedelta
from sqlite3 import Connection
from typing import Annotated, Literal, TypedDict

Currency = Annotated[Literal["EUR", "USD", "GBP", "CHF", "SEK", "PLN"], "ISO 4217 code"]
Moment = Annotated[str, "UTC, like 2026-03-16T09:00:00Z"]

RATES = {
    "EUR": 1.0,
    "USD": 1.0837,
    "GBP": 0.85142,
    "CHF": 0.95426,
    "SEK": 11.2384,
    "PLN": 4.27319,
}
"""Units of each currency for one euro, fixed on RATES_OF."""
RATES_DATE = "2026-03-13"


class ConversionResult(TypedDict):
    amount: float
    source: str
    target: str
    rate: float
    converted: float
    as_of: str


class AddTimeResult(TypedDict):
    start: str
    result: str
    weekday: str


class TimeBetweenResult(TypedDict):
    start: str
    end: str
    seconds: int


class PatternResult(TypedDict):
    pattern: str
    matches: bool
    match: str
    start: int
    end: int


def convert_currency(
    _: Connection, *, amount: float, source: Currency, target: Currency
) -> ConversionResult:
    """Convert an amount of money at the fixed daily rates; the result has two decimals."""
    rate = RATES[target] / RATES[source]
    return {
        "amount": amount,
        "source": source,
        "target": target,
        "rate": round(rate, 6),
        "converted": round(amount * rate, 2),
        "as_of": RATES_DATE,
    }


def add_time(_: Connection, *, start: Moment, days: int = 0, hours: int = 0) -> AddTimeResult:
    """The moment some days and hours after another one."""
    result = parse_moment(start) + timedelta(days=days, hours=hours)
    return {"start": start, "result": format_moment(result), "weekday": result.strftime("%A")}


def time_between(_: Connection, *, start: Moment, end: Moment) -> TimeBetweenResult:
    """How many seconds lie between two moments; negative where the end comes first."""
    seconds = int((parse_moment(end) - parse_moment(start)).total_seconds())
    return {"start": start, "end": end, "seconds": seconds}


def check_pattern(
    _: Connection,
    *,
    pattern: Annotated[str, "a regular expression as Python reads it"],
    text: Annotated[str, "what to look in"],
) -> PatternResult:
    """The first place where a pattern matches a text, and what matched there."""
    try:
        found = re.search(pattern, text)
    except re.PatternError as error:
        raise ValueError(f"pattern: {error}") from error
    start, end = found.span() if found else (0, 0)
    return {
        "pattern": pattern,
        "matches": found is not None,
        "match": found.group() if found else "",
        "start": start,
        "end": end,
    }


def parse_moment(value: str) -> datetime:
    """The moment an ISO 8601 text means, UTC where it names no zone; ValueError if it is none."""
    found = datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def format_moment(value: datetime) -> str:
    """A moment as the shop writes it, to the second."""
    return f"{value.replace(tzinfo=None).isoformat(timespec='seconds')}Z"
