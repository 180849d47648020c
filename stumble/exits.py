"""Exit codes, the same for every command; `record` returns the agent's own."""

from enum import IntEnum


class Exits(IntEnum):
    """What a command ends with."""

    OK = 0
    FINDING = 1
    USAGE = 2
    DIVERGED = 3
    NOTHING_FIRED = 4
    NOT_ENOUGH = 5
    HARNESS = 6
    BUDGET = 124
    NO_COMMAND = 127
