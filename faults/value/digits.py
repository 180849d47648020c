"""V1: a wrong digit."""

import re
from random import Random
from typing import Annotated, Literal

from faults.body import NoSite, text, with_text
from faults.document import Node, read
from faults.operator import Between, JsonPath, operator
from faults.value.picks import numbers, rewritten
from traces.model import Exchange


@operator("V1", fresh=True)
def digit(
    exchange: Exchange,
    rng: Random,
    *,
    min_digits: Annotated[int, Between(2, 15)] = 3,
    how: Literal["substitute", "transpose", "drop"] = "substitute",
    field: str = "",
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Change one digit of one number of at least `min_digits` digits; never the first digit.

    Incident: a typing error, a misread scan. The number keeps its digit count and its place, but
    where `how` is to `drop` a digit; `transpose` swaps two neighbours. Numbers inside ids, dates
    and times are left alone, and so is what a client says about the command it ran. `path`, or
    the name of the `field`, says which number. Its digits are all that is made up.
    """
    document = read(text(exchange))
    of = f" in {field}" if field else ""
    sites = [
        node
        for node in numbers(document, path, f"number of {min_digits} digits{of}")
        if significant(node.said) >= min_digits and (not field or node.name == field)
    ]
    if not sites:
        raise NoSite(f"no number of {min_digits} digits{of} in the result")
    most = max(significant(node.said) for node in sites)
    # A longer number is less likely to turn up elsewhere by chance, so its fate can be told.
    node = rng.choice([node for node in sites if significant(node.said) >= min(4, most)])
    return with_text(exchange, rewritten(document, node, _wrong(node, rng, how)))


def significant(number: str) -> int:
    """Significant digits: leading zeros and trailing zeros behind the point do not count."""
    plain = re.sub(r"[-,]|[eE].*", "", number)
    plain = plain.rstrip("0") if "." in plain else plain
    return len(plain.replace(".", "").lstrip("0"))


def _wrong(node: Node, rng: Random, how: str) -> str:
    said = node.said
    end = re.search(r"[eE]|\Z", said)
    assert end is not None
    digits = [at for at in range(end.start()) if said[at].isdigit()]
    places = digits[1:]
    if how == "transpose":
        pairs = [at for at in places[:-1] if at + 1 in places and said[at] != said[at + 1]]
        if not pairs:
            raise NoSite(f"{said} has no two neighbours that differ")
        at = rng.choice(pairs)
        return said[:at] + said[at + 1] + said[at] + said[at + 2 :]
    # A last zero behind the point says nothing: 1.50 and 1.5 are the same number.
    last = digits[-1]
    at = rng.choice([at for at in places if at != last] or places)
    if how == "drop":
        if said[at - 1 : at] == "." and said[at + 1 : at + 2] in ("", "e", "E"):
            raise NoSite(f"{said} has no digit to lose")
        return said[:at] + said[at + 1 :]
    other = rng.choice([one for one in "0123456789" if one != said[at]])
    return said[:at] + other + said[at + 1 :]
