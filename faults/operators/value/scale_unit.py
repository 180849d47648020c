"""V2 scale_unit: another unit under the same label."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from random import Random
from typing import Annotated, Literal

from faults.document import DocumentNode, parse_document
from faults.judging.invariants import parse_node_decimal
from faults.operator import JsonPath, NumberRange, operator
from faults.operators.value.digit import count_significant_digits
from faults.operators.value.select_value import find_number_nodes, rewrite_value
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
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
    power: Annotated[int, NumberRange(-6, 6)] = 1,
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Convert one number to another unit, or multiply it by ten to the `power`; keep its label.

    Incident: cents instead of euros, a decimal comma read as a point, another locale. An integer
    stays an integer and a decimal keeps its number of places, so the schema holds. The changed
    magnitude is the fault, so earlier values do not bound it. The number is the only fabricated
    part.
    """
    document = parse_document(decode_response_text(exchange))
    convert = _UNITS.get(how, lambda x: x.scaleb(power))
    sites = [
        (node, converted)
        for node in find_number_nodes(document, path)
        if (converted := _convert_number(node, convert)) is not None
    ]
    if not sites:
        raise NoInjectionSite("no number in the result can be given in that unit")
    most = max(count_significant_digits(converted) for _, converted in sites)
    node, converted = rng.choice(
        [each for each in sites if count_significant_digits(each[1]) >= min(3, most)]
    )
    return replace_response_text(exchange, rewrite_value(document, node, converted))


def _convert_number(node: DocumentNode, convert: Callable[[Decimal], Decimal]) -> str | None:
    """Return the number in the other unit, in its old format; None if it would not change."""
    number = parse_node_decimal(node)
    if number is None:
        return None
    places = len(node.text.partition(".")[2])
    other = round(convert(number), places)
    if other == number or (number and not other):
        return None
    return format(other, f"{',' if ',' in node.text else ''}.{places}f")
