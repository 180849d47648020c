"""V1 digit: a wrong digit."""

import re
from random import Random
from typing import Annotated, Literal

from faults.document import DocumentNode, parse_document
from faults.operator import JsonPath, NumberRange, operator
from faults.operators.value.select_value import find_number_nodes, rewrite_value
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from traces.model import Exchange


@operator("V1", fresh=True)
def digit(
    exchange: Exchange,
    rng: Random,
    *,
    min_digits: Annotated[int, NumberRange(2, 15)] = 3,
    how: Literal["substitute", "transpose", "drop"] = "substitute",
    field: str = "",
    path: Annotated[str, JsonPath()] = "",
) -> Exchange:
    """Change one digit of one number of at least `min_digits` digits; never the first digit.

    Incident: a typing error, a misread scan. The number keeps its digit count and its position,
    unless `how` is `drop`; `transpose` swaps two neighbouring digits. Numbers inside ids, dates and
    times stay unchanged, and so does a client's text about the command it ran. `path`, or the name
    of the `field`, selects the number. Its digits are the only fabricated part.
    """
    told = decode_response_text(exchange)
    document = parse_document(told)
    suffix = (f" in {field}" if field else "") + _name_joined_digits(told, min_digits)
    sites = [
        node
        for node in find_number_nodes(document, path, f"number of {min_digits} digits{suffix}")
        if count_significant_digits(node.text) >= min_digits and (not field or node.name == field)
    ]
    if not sites:
        raise NoInjectionSite(f"no number of {min_digits} digits{suffix} in the result")
    most = max(count_significant_digits(node.text) for node in sites)
    # A longer number is less likely to occur elsewhere by chance, so its use can be traced.
    node = rng.choice(
        [node for node in sites if count_significant_digits(node.text) >= min(4, most)]
    )
    return replace_response_text(
        exchange, rewrite_value(document, node, _change_digit(node, rng, how))
    )


def _name_joined_digits(text: str, minimum: int) -> str:
    """Return words about digits that are part of a longer word, which is left as it is."""
    joined = re.search(rf"\w*[A-Za-z_]\d{{{minimum},}}\w*|\d{{{minimum},}}[A-Za-z_]\w*", text)
    return f" ({joined[0]} is a word, not a number)" if joined else ""


def count_significant_digits(number: str) -> int:
    """Count significant digits, without leading zeros and zeros at the end of a fraction."""
    plain = re.sub(r"[-,]|[eE].*", "", number)
    plain = plain.rstrip("0") if "." in plain else plain
    return len(plain.replace(".", "").lstrip("0"))


def _change_digit(node: DocumentNode, rng: Random, how: str) -> str:
    text = node.text
    end = re.search(r"[eE]|\Z", text)
    assert end is not None
    digits = [at for at in range(end.start()) if text[at].isdigit()]
    places = digits[1:]
    if how == "transpose":
        pairs = [at for at in places[:-1] if at + 1 in places and text[at] != text[at + 1]]
        if not pairs:
            raise NoInjectionSite(f"{text} has no two neighbours that differ")
        at = rng.choice(pairs)
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    # The last digit is avoided: 1.50 and 1.5 are the same number.
    last = digits[-1]
    at = rng.choice([at for at in places if at != last] or places)
    if how == "drop":
        if text[at - 1 : at] == "." and text[at + 1 : at + 2] in ("", "e", "E"):
            raise NoInjectionSite(f"{text} has no digit to lose")
        return text[:at] + text[at + 1 :]
    other = rng.choice([digit for digit in "0123456789" if digit != text[at]])
    return text[:at] + other + text[at + 1 :]
