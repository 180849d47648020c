"""Errors that end a command, and exit codes, the same for every command.

`record` returns the agent's exit code instead.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the commands."""

    OK = 0
    FINDING = 1
    USAGE = 2
    DIVERGED = 3
    NOTHING_FIRED = 4
    NOT_ENOUGH = 5
    HARNESS = 6
    BUDGET = 124
    NO_COMMAND = 127


class UsageError(Exception):
    """Invalid options or input, reported in one line before anything starts."""

    exit_code = ExitCode.USAGE

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class HarnessError(UsageError):
    """stumble or its environment failed; no statement about the agent."""

    exit_code = ExitCode.HARNESS


class CommandNotFound(UsageError):
    """The operating system cannot run the agent's program."""

    exit_code = ExitCode.NO_COMMAND


def signal_to_exit_code(number: int) -> int:
    """Return the exit code of a command that a signal ended (128 + number)."""
    return 128 + number
