"""V: plausible wrong values. Type and schema are kept, and no error is reported."""

from faults.operators.value import (
    bool_flip,
    date_shift,
    digit,
    enum_swap,
    field_swap,
    off_by_one,
    replace,
    scale_unit,
    sign,
    stale,
    wrong_entity,
)

__all__ = [
    "enum_swap",
    "date_shift",
    "digit",
    "wrong_entity",
    "bool_flip",
    "scale_unit",
    "off_by_one",
    "replace",
    "sign",
    "stale",
    "field_swap",
]
