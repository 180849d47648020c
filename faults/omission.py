"""S: part of the answer is missing."""

from random import Random
from typing import Annotated

from faults.body import NoSite, text, with_text
from faults.operator import Between, operator
from traces.model import Exchange


@operator("S1")
def truncate(
    exchange: Exchange, rng: Random, *, keep: Annotated[float, Between(0, 1)] = 0.5
) -> Exchange:
    """Keep the first part of the text, `keep` of its characters, and lose the rest.

    Incident: a log cap, a token limit, a cut pipe that nobody reported. The length headers are
    those of the shorter body, so that no client can tell by the protocol.
    """
    whole = text(exchange)
    part = whole[: int(len(whole) * keep)]
    if part == whole:
        raise NoSite("nothing would be cut off")
    return with_text(exchange, part)
