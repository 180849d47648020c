"""Chance with an address: every draw is a function of what is struck, never of when.

A shared generator would give other draws as soon as parallel calls arrive in another order or
an earlier run diverges. Here the same seed strikes the same calls with the same values on
every machine.
"""

from hashlib import blake2b
from random import Random


def address(
    *, seed: int, trace: str, rep: int, fault: str, tool: str, arguments: str, occurrence: int
) -> str:
    """The address of one strike, as 32 hex digits; `arguments` is canonical JSON."""
    digest = blake2b(digest_size=16)
    for part in (seed, trace, rep, fault, tool, arguments, occurrence):
        text = str(part).encode()
        digest.update(len(text).to_bytes(4) + text)
    return digest.hexdigest()


def rng(at: str, draw: int = 0) -> Random:
    """The generator of an address; `draw` counts redraws after a value that would not do."""
    return Random(int.from_bytes(blake2b(f"{at}/{draw}".encode(), digest_size=16).digest()))


def share(at: str) -> float:
    """An address as a number from 0 up to 1, evenly spread."""
    return int(at[:13], 16) / 16**13
