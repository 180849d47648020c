"""V: a plausible wrong value; type, schema and digit count are kept."""

import re
from random import Random
from typing import Annotated

from faults.body import NoSite, text, with_text
from faults.operator import Between, operator
from traces.model import Exchange
from traces.volatile import printed

# A number that stands alone: not part of an id, a date, a time, a version or a longer word.
_NUMBER = re.compile(r"(?<![\w.\-/#+])(?<!\d:)\d+(?:\.\d+)?(?![\w\-/]|[:.]\d)")


@operator("V1")
def digit(
    exchange: Exchange,
    rng: Random,
    *,
    min_digits: Annotated[int, Between(2, 15)] = 3,
    field: str = "",
) -> Exchange:
    """Change one digit of one number of at least `min_digits` digits; never the first digit.

    Incident: a typing error, a misread scan. The number keeps its digit count and its place.
    Numbers inside ids, dates and times are left alone, and so is what a client says about the
    command it ran. `field` names the JSON member to strike.
    """
    whole = text(exchange)
    sites = [
        found
        for found in _NUMBER.finditer(whole, printed(whole))
        if _digits(found[0]) >= min_digits and (not field or _member(whole, found.start(), field))
    ]
    if not sites:
        of = f" in {field}" if field else ""
        raise NoSite(f"no number of {min_digits} digits{of} in the result")
    most = max(_digits(found[0]) for found in sites)
    # A longer number is less likely to turn up elsewhere by chance, so its fate can be told.
    found = rng.choice([found for found in sites if _digits(found[0]) >= min(4, most)])
    places = [at for at in range(found.start() + 1, found.end()) if whole[at].isdigit()]
    # A last zero behind the point says nothing: 1.50 and 1.5 are the same number.
    at = rng.choice([at for at in places if at != found.end() - 1] or places)
    other = rng.choice([one for one in "0123456789" if one != whole[at]])
    return with_text(exchange, whole[:at] + other + whole[at + 1 :])


def _digits(number: str) -> int:
    """Significant digits: leading zeros and trailing zeros behind the point do not count."""
    plain = number.rstrip("0") if "." in number else number
    return len(plain.replace(".", "").lstrip("0"))


def _member(text: str, start: int, field: str) -> bool:
    """True if the value that begins at `start` is the JSON member of this name."""
    return re.search(rf'"{re.escape(field)}"\s*:\s*"?$', text[:start]) is not None
