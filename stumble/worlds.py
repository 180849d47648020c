"""Worlds from the command line."""

import shlex

from scenarios.world import CommandWorld, World
from stumble.exits import Wrong


def by_command(reset: str | None, verify: str | None) -> World | None:
    """A world behind commands; None where none was named."""
    if reset is None and verify is None:
        return None
    if reset is None:
        raise Wrong("--verify needs --reset: a verdict means nothing on a used world")
    return CommandWorld(tuple(shlex.split(reset)), tuple(shlex.split(verify or "")))
