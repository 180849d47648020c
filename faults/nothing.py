"""Sham: the whole procedure of an injection, but nothing changes."""

from random import Random

from faults.operator import operator
from traces.model import Exchange


@operator("sham")
def sham(exchange: Exchange, rng: Random) -> Exchange:
    """Change nothing. What an agent is said to notice here is the detector's false alarm."""
    return exchange
