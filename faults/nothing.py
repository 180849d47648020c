"""Sham: the whole procedure of an injection, but nothing changes."""

from random import Random

from faults.operator import BENT, Shows, operator
from traces.model import Exchange


@operator("sham", shows={**BENT, "model": Shows("none", "the answer as it is")})
def sham(exchange: Exchange, rng: Random) -> Exchange:
    """Change nothing. What an agent is said to notice here is the detector's false alarm."""
    return exchange
