"""Which commands a call runs: the programs of a line of shell, with their sub-commands."""

import re
import shlex
from functools import lru_cache

from faults.judging.value_tokens import find_json_leaves, mask_values

_COMMAND_FIELDS = frozenset(("command", "cmd", "commands", "script", "bash", "shell"))
"""Names of the argument that holds a command, as the tools of the known coding agents have them."""
_ENDS = re.compile(r"&&|\|\||[;|\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")
_SUB_COMMAND = re.compile(r"[a-z][a-z-]*")

type CommandName = tuple[str, str]
"""A program, and the word after it if that may name what it does."""


@lru_cache(1024)
def list_commands(arguments: str) -> frozenset[CommandName]:
    """Return the commands in a call's arguments, a text of JSON; empty if it runs none.

    Values are masked, as those of a faulted run differ.
    """
    lines = [leaf.value for leaf in find_json_leaves(arguments) if leaf.name in _COMMAND_FIELDS]
    parts = (part for line in lines for part in _ENDS.split(line))
    return frozenset(name for part in parts if (name := _name_command(part)) is not None)


def _name_command(text: str) -> CommandName | None:
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # an open quote: a text over several lines
        words = text.split()
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    if not words:
        return None
    sub_command = words[1] if len(words) > 1 and _SUB_COMMAND.fullmatch(words[1]) else ""
    return mask_values(words[0]), sub_command
