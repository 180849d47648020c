"""V2: another unit, under the same label."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from random import Random
from typing import Annotated, Literal

from faults.body import NoSite, text, with_text
from faults.document import Node, read
from faults.invariants import decimal
from faults.operator import Between, JsonPath, operator
from faults.value.digits import significant
from faults.value.picks import numbers, rewritten
from traces.model import Exchange

_UNITS: Mapping[str, Callable[[Decimal], Decimal]] = {
    "to_cents": lambda x: x * 100,
    "from_cents": lambda x: x / 100,
    "c_to_f": lambda x: x * 9 / 5 + 32,
    "f_to_c": lambda x: (x - 32) * 5 / 9,
    "km_to_mi": lambda x: x / Decimal("1.609344"),
    "mi_to_km": lambda x: x * Decimal("1.609344"),
    "kg_to_lb": lambda x: x / Decimal("0.45359237"),
    "lb_to_kg": lambda x: x * Decimal("0.45359237"),
}


@operator("V2", fresh=True)
def scale_unit(
    exchange: Exchange,
    rng: Random,
    *,
    how: Literal[
        "power",
        "to_cents",
        "from_cents",
        "c_to_f",
        "f_to_c",
        "km_to_mi",
        "mi_to_km",
        "kg_to_lb",
        "lb_to_kg",
    ] = "power",
    power: Annotated[int, Between(-6, 6)] = 1,
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Give one number in another unit, or times ten to the `power`, and keep its label.

    Incident: cents for euros, a decimal comma read as a point, another locale. A whole number
    stays whole and a decimal keeps its places, so the schema holds; that the size is another is
    the point, so values that were seen before do not bound it. It is all that is made up.
    """
    document = read(text(exchange))
    convert = _UNITS.get(how, lambda x: x.scaleb(power))
    sites = [
        (node, said)
        for node in numbers(document, path)
        if (said := _converted(node, convert)) is not None
    ]
    if not sites:
        raise NoSite("no number in the result can be given in that unit")
    most = max(significant(said) for _, said in sites)
    node, said = rng.choice([each for each in sites if significant(each[1]) >= min(3, most)])
    return with_text(exchange, rewritten(document, node, said))


def _converted(node: Node, convert: Callable[[Decimal], Decimal]) -> str | None:
    """The number in the other unit, as it was written; None where it would be the same."""
    number = decimal(node)
    if number is None:
        return None
    places = len(node.said.partition(".")[2])
    other = round(convert(number), places)
    if other == number or (number and not other):
        return None
    return format(other, f"{',' if ',' in node.said else ''}.{places}f")
