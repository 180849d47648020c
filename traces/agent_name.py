"""The name of an agent that was given none."""

from collections.abc import Sequence

_INTERPRETERS = ("python", "node", "npx", "uvx")


def name_agent_command(command: Sequence[str]) -> str:
    """Return an agent's script or module, else its program, by its command."""
    program, *rest = command
    name = program.rpartition("/")[2]
    if not rest or not name.startswith(_INTERPRETERS):
        return name
    script = rest[1] if rest[0] == "-m" and len(rest) > 1 else rest[0]
    return name if script.startswith("-") else script.rpartition("/")[2]
