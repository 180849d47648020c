"""Exit codes, the same for every command; `record` returns the agent's own."""

from enum import IntEnum
from typing import IO, Any

import click


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


class Wrong(click.ClickException):
    """What was asked for makes no sense; said in one line before anything starts."""

    exit_code = Exits.USAGE

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line to standard error."""
        click.echo(f"stumble: {self.message}", file=file, err=file is None)


class Failed(Wrong):
    """Something of ours or around us failed; it says nothing about the agent."""

    exit_code = Exits.HARNESS


class Missing(Wrong):
    """The system will not run the agent's program."""

    exit_code = Exits.NO_COMMAND


def interrupted(number: int) -> int:
    """The exit code of a command that was ended by a signal."""
    return 128 + number
