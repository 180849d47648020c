"""Similarity of a used value to the wrong value: exact, other format, rounded or derived.

Rounded and derived need controls. A rounding counts with at least three significant digits and if
it is not a rounding of the true value; a derived value only if the clean twin's slot is the same
function of the true value: without that, chance would find a function for every second number.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from faults.judging.identifiers import count_token_digits
from faults.judging.number_forms import normalize_numbers
from faults.judging.value_tokens import JsonLeaf, to_number_token

type NumberChange = tuple[Decimal, Decimal]
"""A number before and after the injection."""

UNIT_FACTORS = tuple(
    map(Decimal, ("10", "100", "1000", "12", "24", "60", "3600", "1.609344", "0.453592"))
)
"""Unit conversion factors; their inverses count too."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
MAX_RELATIVE_SLACK = Decimal("0.001")
MAX_NUMBER_CHARS = 24
"""Maximum characters of a number used in arithmetic."""


def parse_text_numbers(text: str) -> tuple[Decimal, ...]:
    """Return the numbers of a text, in order."""
    numbers = (match[0].replace(",", "") for match in _NUMBER.finditer(normalize_numbers(text)))
    return tuple(Decimal(number) for number in numbers if len(number) <= MAX_NUMBER_CHARS)


def find_number_changes(pairs: Iterable[tuple[JsonLeaf, JsonLeaf]]) -> tuple[NumberChange, ...]:
    """Return the changed values that are numbers, or texts with exactly one number."""
    changes = []
    for was, now in pairs:
        before, after = parse_text_numbers(was.value), parse_text_numbers(now.value)
        if len(before) == len(after) == 1 and before != after:
            changes.append((before[0], after[0]))
    return tuple(changes)


def find_rounded_tokens(pairs: Iterable[NumberChange]) -> frozenset[str]:
    """Return the tokens of rounded changed numbers that are not roundings of the true ones."""
    changed: set[str] = set()
    true: set[str] = set()
    for was, now in pairs:
        changed.update(shorten_number(now))
        true.update(shorten_number(was))
    return frozenset(changed - true)


def shorten_number(value: Decimal) -> Iterator[str]:
    """Yield the value rounded to fewer places, with at least three significant digits."""
    places = max(0, -_find_exponent(value))
    full = to_number_token(str(value))
    integer_places = max(0, value.copy_abs().adjusted())
    # Decimal places first, then tens and hundreds: 125_940 may be given as 126,000.
    for place in range(places - 1, -integer_places - 1, -1):
        unit = Decimal(1).scaleb(-place)
        for how in (ROUND_HALF_UP, ROUND_HALF_EVEN):
            short = value.quantize(unit, how)
            digits = len(str(abs(int(short.scaleb(place)))))
            token = to_number_token(str(short))
            if digits >= 3 and token != full and count_token_digits(token) >= 3:
                yield token


def _find_exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def is_derived_number(
    pairs: Sequence[NumberChange], twin: Decimal, used: Decimal, context: Sequence[Decimal]
) -> bool:
    """Return whether one function maps a true value to the twin's number and the wrong one to this.

    The functions: plus, minus, times and divided by one number of the context (sorted), unit
    conversions, and a value that enters a sum as it is or times one number of the context.
    """
    if twin == used:
        return False
    slack = Decimal(1).scaleb(min(_find_exponent(twin), _find_exponent(used), 0)) / 2
    return any(
        _is_explained_by_function(was, now, twin, used, context, slack) for was, now in pairs
    )


def _is_explained_by_function(
    was: Decimal,
    now: Decimal,
    twin: Decimal,
    used: Decimal,
    context: Sequence[Decimal],
    slack: Decimal,
) -> bool:
    observed, expected = used - twin, now - was
    if abs(observed - expected) <= slack and (
        count_token_digits(to_number_token(str(expected))) >= 3
        or _has_near_number(context, twin - was, slack)
    ):
        return True
    if abs(observed + expected) <= slack and _has_near_number(context, twin + was, slack):
        return True
    if was and now and twin and used:
        if abs(used - twin * now / was) <= slack * (1 + abs(now / was)) and (
            count_token_digits(to_number_token(str(used))) >= 5
            or _is_known_factor(context, twin / was, slack / abs(was))
        ):
            return True
        if abs(used - twin * was / now) <= slack * (1 + abs(was / now)) and _has_near_number(
            context, twin * was, slack * abs(was)
        ):
            return True
    # A sum in which only one term, a multiple of the value, has changed.
    return count_token_digits(to_number_token(str(abs(observed)))) >= 3 and _is_known_factor(
        context, observed / expected, 2 * slack / abs(expected)
    )


def _has_near_number(context: Sequence[Decimal], value: Decimal, slack: Decimal) -> bool:
    """Return whether the sorted numbers contain one within `slack` of this value."""
    at = bisect_left(context, value - slack)
    return at < len(context) and context[at] <= value + slack


def _is_known_factor(context: Sequence[Decimal], factor: Decimal, slack: Decimal) -> bool:
    """Return whether a factor, or its inverse, is in the context or converts units.

    A factor known less precisely than one part in a thousand would match too much.
    """
    factor = abs(factor)
    if not factor or slack / factor > MAX_RELATIVE_SLACK:
        return False
    inverse, wide = 1 / factor, slack / (factor * factor)
    return (
        _has_near_number(context, factor, slack)
        or _has_near_number(context, inverse, wide)
        or any(abs(unit - factor) <= slack or abs(unit - inverse) <= wide for unit in UNIT_FACTORS)
    )


def aggregate_columns(leaves: Sequence[JsonLeaf]) -> dict[str, tuple[Decimal, ...]]:
    """Return sum, mean, minimum, maximum and count of each numeric column, by its path."""
    columns: dict[str, list[Decimal]] = {}
    for leaf in leaves:
        names = leaf.path.split(".")
        if leaf.kind == "number" and any(name.isdecimal() for name in names):
            path = ".".join("*" if name.isdecimal() else name for name in names)
            columns.setdefault(path, []).extend(parse_text_numbers(leaf.value))
    return {
        path: (sum(v, Decimal(0)), sum(v, Decimal(0)) / len(v), min(v), max(v), Decimal(len(v)))
        for path, v in columns.items()
        if v
    }


def is_same_aggregate(
    before: dict[str, tuple[Decimal, ...]],
    now: dict[str, tuple[Decimal, ...]],
    twin: Decimal,
    used: Decimal,
) -> bool:
    """Return whether one aggregate gives the twin's number before and this number after."""
    slack = Decimal(1).scaleb(min(_find_exponent(twin), _find_exponent(used), 0)) / 2
    return twin != used and any(
        abs(was - twin) <= slack and abs(changed - used) <= slack
        for path, values in before.items()
        if path in now
        for was, changed in zip(values, now[path], strict=True)
        if was != changed
    )
