"""Sham: the whole procedure of an injection, but nothing changes."""

from collections.abc import Mapping
from random import Random

from faults.operator import Shows, operator
from traces.model import Exchange, Place

_SAME: Mapping[Place, Shows] = {
    "http": Shows("none", "the answer as it is"),
    "mcp": Shows("none", "the result as it is"),
    "model-boundary": Shows("none", "the result as it is"),
    "model": Shows("none", "the answer as it is"),
}


@operator("sham", shows=_SAME)
def sham(exchange: Exchange, rng: Random) -> Exchange:
    """Change nothing. What an agent is said to notice here is the detector's false alarm."""
    return exchange
