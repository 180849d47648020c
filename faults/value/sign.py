"""V3: plus for minus."""

import re
from random import Random
from typing import Annotated

from faults.body import NoSite, text, with_text
from faults.document import read
from faults.operator import JsonPath, operator
from faults.value.digits import significant
from faults.value.picks import numbers, rewritten
from traces.model import Exchange


@operator("V3", fresh=True)
def sign(exchange: Exchange, rng: Random, *, path: Annotated[str, JsonPath()] = "") -> Exchange:
    """Turn the sign of one number.

    Incident: debit for credit. Zero has no sign, and is left alone. The sign is all it makes up.
    """
    document = read(text(exchange))
    found = numbers(document, path)
    sites = [node for node in found if re.search("[1-9]", node.said)]
    if not sites:
        raise NoSite("all numbers in the result are zero")
    most = max(significant(node.said) for node in sites)
    node = rng.choice([node for node in sites if significant(node.said) >= min(3, most)])
    other = node.said[1:] if node.said.startswith("-") else f"-{node.said}"
    return with_text(exchange, rewritten(document, node, other))
