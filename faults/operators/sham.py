"""Sham: a complete injection that changes nothing."""

from collections.abc import Mapping
from random import Random

from faults.operator import FaultVisibility, operator
from traces.model import Exchange, Place

_SAME: Mapping[Place, FaultVisibility] = {
    "http": FaultVisibility("none", "the answer as it is"),
    "mcp": FaultVisibility("none", "the result as it is"),
    "model-boundary": FaultVisibility("none", "the result as it is"),
    "model": FaultVisibility("none", "the answer as it is"),
}


@operator("sham", shows=_SAME)
def sham(exchange: Exchange, rng: Random) -> Exchange:
    """Change nothing. A notice signal detected here is a false alarm of the detector."""
    return exchange
