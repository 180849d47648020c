"""An operator for `stumble`: one number in a tool's result is rounded to few decimals."""

from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Annotated

from faults.document import parse_document
from faults.operator import JsonPath, NumberRange, operator
from faults.operators.value.select_value import choose_one, find_number_nodes, rewrite_value
from faults.response_body import decode_response_text, replace_response_text
from traces.model import Exchange


@operator("V90", fresh=True)
def round_off(
    exchange: Exchange,
    rng: Random,
    *,
    decimals: Annotated[int, NumberRange(0, 6)] = 0,
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Round one number to `decimals` decimals.

    Incident: a service stores money in an integer column. `path` selects the number; without it,
    one of the numbers that rounding changes is chosen by `rng`.
    """
    document = parse_document(decode_response_text(exchange))
    step = Decimal(1).scaleb(-decimals)
    rounded = {
        node: str(Decimal(node.text).quantize(step, ROUND_HALF_UP))
        for node in find_number_nodes(document, path)
        if Decimal(node.text) % step
    }
    node = choose_one(rng, rounded, f"number with more than {decimals} decimals")
    return replace_response_text(exchange, rewrite_value(document, node, rounded[node]))
