"""V3 sign: a wrong sign."""

import re
from random import Random
from typing import Annotated

from faults.document import parse_document
from faults.operator import JsonPath, operator
from faults.operators.value.digit import count_significant_digits
from faults.operators.value.select_value import find_number_nodes, rewrite_value
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from traces.model import Exchange


@operator("V3", fresh=True)
def sign(exchange: Exchange, rng: Random, *, path: Annotated[str, JsonPath()] = "") -> Exchange:
    """Invert the sign of one number.

    Incident: debit instead of credit. Zero has no sign and stays unchanged. The sign is the only
    fabricated part.
    """
    document = parse_document(decode_response_text(exchange))
    numbers = find_number_nodes(document, path)
    sites = [node for node in numbers if re.search("[1-9]", node.text)]
    if not sites:
        raise NoInjectionSite("all numbers in the result are zero")
    most = max(count_significant_digits(node.text) for node in sites)
    node = rng.choice(
        [node for node in sites if count_significant_digits(node.text) >= min(3, most)]
    )
    other = node.text[1:] if node.text.startswith("-") else f"-{node.text}"
    return replace_response_text(exchange, rewrite_value(document, node, other))
