"""Addressed randomness: every draw is a function of the injection's address, not of its order.

A shared generator would return other draws as soon as parallel calls arrive in another order or an
earlier run diverges. Here the same seed injects the same values into the same calls on every
machine.
"""

from hashlib import blake2b
from random import Random


def make_draw_address(
    *, seed: int, trace: str, rep: int, fault: str, tool: str, arguments: str, occurrence: int
) -> str:
    """Return the address of one injection, as 32 hex digits; `arguments` is canonical JSON."""
    digest = blake2b(digest_size=16)
    for part in (seed, trace, rep, fault, tool, arguments, occurrence):
        text = str(part).encode()
        digest.update(len(text).to_bytes(4) + text)
    return digest.hexdigest()


def make_rng(at: str, draw: int = 0) -> Random:
    """Return the generator of an address; `draw` counts redraws after rejected values."""
    return Random(int.from_bytes(blake2b(f"{at}/{draw}".encode(), digest_size=16).digest()))


def to_unit_interval(at: str) -> float:
    """Map an address to a number in [0, 1), uniformly."""
    return int(at[:13], 16) / 16**13
