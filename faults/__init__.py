"""What can go wrong, and what it did.

Three roles that do not know one another: a fault (a pure function) bends an exchange, the
nemesis decides which exchange is struck, and the judge looks at the recorded evidence. All of
them are functions of values; only the performer waits, writes and hangs up.
"""

from faults import effect, explicit, nothing, omission, transport, value
from faults.binding import bind
from faults.grammar import parse
from faults.operator import OPERATORS
from faults.plugins import find

__all__ = [
    "OPERATORS",
    "bind",
    "effect",
    "explicit",
    "find",
    "nothing",
    "omission",
    "parse",
    "transport",
    "value",
]
