"""How closely what an agent used is the wrong value: exact, otherwise said, rounded or derived.

Rounded and derived are only as good as their controls. A rounding counts to three significant
digits and where it is no rounding of the true value; something derived only where the clean twin's
slot is the same function of the true value: without that, chance would find a function for every
second number.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from faults.atoms import Leaf, number
from faults.entity import digits
from faults.judging.number_forms import plain_numbers

type Pair = tuple[Decimal, Decimal]
"""A number as it was, and as it was bent."""

UNITS = tuple(map(Decimal, ("10", "100", "1000", "12", "24", "60", "3600", "1.609344", "0.453592")))
"""Constants with which values are converted, and their inverses."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
FINE = Decimal("0.001")
MOST = 24
"""Digits up to which a number is reckoned with."""


def numbers(text: str) -> tuple[Decimal, ...]:
    """The numbers of a text, in their order."""
    found = (match[0].replace(",", "") for match in _NUMBER.finditer(plain_numbers(text)))
    return tuple(Decimal(said) for said in found if len(said) <= MOST)


def numeric(pairs: Iterable[tuple[Leaf, Leaf]]) -> tuple[Pair, ...]:
    """The swapped values that are numbers, also where a text holds just one."""
    found = []
    for was, now in pairs:
        before, after = numbers(was.said), numbers(now.said)
        if len(before) == len(after) == 1 and before != after:
            found.append((before[0], after[0]))
    return tuple(found)


def roundings(pairs: Iterable[Pair]) -> frozenset[str]:
    """The atoms of all shorter forms of the bent numbers that are none of the true ones."""
    bent: set[str] = set()
    true: set[str] = set()
    for was, now in pairs:
        bent.update(shorter(now))
        true.update(shorter(was))
    return frozenset(bent - true)


def shorter(value: Decimal) -> Iterator[str]:
    """The value to fewer places, as long as three significant digits are left."""
    places = max(0, -_exponent(value))
    full = number(str(value))
    whole = max(0, value.copy_abs().adjusted())
    # Beyond the point, then tens and hundreds: 125_940 is said as 126,000.
    for place in range(places - 1, -whole - 1, -1):
        unit = Decimal(1).scaleb(-place)
        for how in (ROUND_HALF_UP, ROUND_HALF_EVEN):
            short = value.quantize(unit, how)
            kept = len(str(abs(int(short.scaleb(place)))))
            said = number(str(short))
            if kept >= 3 and said != full and digits(said) >= 3:
                yield said


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def derived(
    pairs: Sequence[Pair], twin: Decimal, used: Decimal, context: Sequence[Decimal]
) -> bool:
    """Whether some function gives the twin's number of a true value and this one of the bent.

    The functions: plus, minus, times and by one number of the context (sorted), conversions of
    units, and a value that goes into a sum as it is or times one number of the context.
    """
    if twin == used:
        return False
    slack = Decimal(1).scaleb(min(_exponent(twin), _exponent(used), 0)) / 2
    return any(_function(was, now, twin, used, context, slack) for was, now in pairs)


def _function(
    was: Decimal,
    now: Decimal,
    twin: Decimal,
    used: Decimal,
    context: Sequence[Decimal],
    slack: Decimal,
) -> bool:
    moved, meant = used - twin, now - was
    if abs(moved - meant) <= slack and (
        digits(number(str(meant))) >= 3 or _has(context, twin - was, slack)
    ):
        return True
    if abs(moved + meant) <= slack and _has(context, twin + was, slack):
        return True
    if was and now and twin and used:
        if abs(used - twin * now / was) <= slack * (1 + abs(now / was)) and (
            digits(number(str(used))) >= 5 or _times(context, twin / was, slack / abs(was))
        ):
            return True
        if abs(used - twin * was / now) <= slack * (1 + abs(was / now)) and _has(
            context, twin * was, slack * abs(was)
        ):
            return True
    # A sum of which only one part, a multiple of the value, has moved.
    return digits(number(str(abs(moved)))) >= 3 and _times(
        context, moved / meant, 2 * slack / abs(meant)
    )


def _has(context: Sequence[Decimal], value: Decimal, slack: Decimal) -> bool:
    """Whether a number near this one is among the sorted ones."""
    at = bisect_left(context, value - slack)
    return at < len(context) and context[at] <= value + slack


def _times(context: Sequence[Decimal], factor: Decimal, slack: Decimal) -> bool:
    """Whether a factor is in the context or converts units, itself or its inverse.

    One that is known less well than to a part in a thousand fits too much.
    """
    factor = abs(factor)
    if not factor or slack / factor > FINE:
        return False
    inverse, wide = 1 / factor, slack / (factor * factor)
    return (
        _has(context, factor, slack)
        or _has(context, inverse, wide)
        or any(abs(unit - factor) <= slack or abs(unit - inverse) <= wide for unit in UNITS)
    )


def aggregates(leaves: Sequence[Leaf]) -> dict[str, tuple[Decimal, ...]]:
    """Sum, mean, least, greatest and count of each column of numbers in a result, by its path."""
    columns: dict[str, list[Decimal]] = {}
    for leaf in leaves:
        names = leaf.path.split(".")
        if leaf.kind == "number" and any(name.isdecimal() for name in names):
            where = ".".join("*" if name.isdecimal() else name for name in names)
            columns.setdefault(where, []).extend(numbers(leaf.said))
    return {
        where: (sum(v, Decimal(0)), sum(v, Decimal(0)) / len(v), min(v), max(v), Decimal(len(v)))
        for where, v in columns.items()
        if v
    }


def aggregated(
    before: dict[str, tuple[Decimal, ...]],
    now: dict[str, tuple[Decimal, ...]],
    twin: Decimal,
    used: Decimal,
) -> bool:
    """Whether the same aggregate gives the twin's number of the true list and this of the bent."""
    slack = Decimal(1).scaleb(min(_exponent(twin), _exponent(used), 0)) / 2
    return twin != used and any(
        abs(was - twin) <= slack and abs(bent - used) <= slack
        for where, values in before.items()
        if where in now
        for was, bent in zip(values, now[where], strict=True)
        if was != bent
    )
