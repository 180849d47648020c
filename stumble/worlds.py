"""Worlds from the command line."""

import shlex
import shutil

from scenarios.world import CommandWorld, World
from stumble.exits import Wrong


def by_command(
    reset: str | None, verify: str | None, answer: str | None = None, *, state: str | None = None
) -> World | None:
    """A world behind commands; None where none was named.

    An answer is judged where no command does it.
    """
    if reset is None and verify is None and state is None:
        return None
    if reset is None:
        option = "--state" if verify is None else "--verify"
        raise Wrong(f"{option} needs --reset: a verdict means nothing on a used world")
    return CommandWorld(
        _command("--reset", reset),
        _command("--verify", verify) if verify else (),
        answer=answer or "",
        state_command=_command("--state", state) if state else (),
    )


def _command(option: str, text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise Wrong(f"{option} {text!r}: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise Wrong(f"{option} {text!r}: no such command")
    return words
