"""V: a plausible wrong value; type and schema are kept, and nothing says that it is wrong."""

from faults.value import (
    choice,
    dates,
    digits,
    entity,
    flip,
    scale,
    shifted,
    sign,
    stale,
    swap,
)

__all__ = [
    "choice",
    "dates",
    "digits",
    "entity",
    "flip",
    "scale",
    "shifted",
    "sign",
    "stale",
    "swap",
]
