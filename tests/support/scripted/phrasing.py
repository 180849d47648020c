"""How scripts format values: other separators, other digits, words."""

from collections.abc import Callable
from datetime import date

_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
"""
ONES = _WORDS.split()[:20]
TENS = ["", "ten", *_WORDS.split()[20:]]


def de(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def arabic(value: float) -> str:
    return f"{value:.2f}".translate(str.maketrans("0123456789.", "٠١٢٣٤٥٦٧٨٩٫"))


def hindi(value: float) -> str:
    return f"{value:.2f}".translate(str.maketrans("0123456789", "०१२३४५६७८९"))


def percent(value: float) -> str:
    return f"{value * 100:.0f} %"


def day(iso: str) -> str:
    when = date.fromisoformat(iso)
    return f"{when.day} {when:%B %Y}"


def words(value: float) -> str:
    """Spell an integer below ten thousand."""
    number = int(value)
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")
    unit, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = number % unit
    return f"{ONES[number // unit]} {name}" + (f" {words(rest)}" if rest else "")


NAMES: dict[str, Callable[..., str]] = {
    each.__name__: each for each in (de, arabic, hindi, percent, day, words)
}
