"""Faults: operators, their targeting, their injection, and the judging of what followed.

Three independent roles: an operator (a pure function) changes an exchange, the injector decides
which exchange to change, the judge evaluates the recorded evidence. All of them are functions of
values; only the replay server waits, writes and closes connections.
"""

from faults.operator import OPERATORS
from faults.operators import effect, explicit, omission, sham, transport, value
from faults.plugins import find_operator
from faults.specs.spec_check import bind_operator
from faults.specs.spec_syntax import parse_spec_text

__all__ = [
    "OPERATORS",
    "bind_operator",
    "effect",
    "explicit",
    "find_operator",
    "sham",
    "omission",
    "parse_spec_text",
    "transport",
    "value",
]
