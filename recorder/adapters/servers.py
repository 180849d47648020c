"""A stdio server in an agent's settings, and the same behind the tee of a run."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recorder import tee


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What an adapter needs to know."""

    env: Mapping[str, str]
    socket: Path
    folder: Path
    cwd: Path

    def path(self, variable: str, default: str) -> Path:
        """The folder that a variable names, else one in HOME."""
        home = Path(self.env.get("HOME") or Path.home())
        return Path(self.env.get(variable) or home / default)

    def teed(self, name: str, command: Sequence[str]) -> list[str]:
        """A server's command behind the tee of this run."""
        program = str(Path(tee.__file__).absolute())
        words = [sys.executable, "-I", "-S", program, "--name", name, "--run", str(self.socket)]
        return [*words, "--", *command]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """A command that starts the agent with its servers behind tees."""

    command: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """What will not be seen, and what to do."""


def stdio_command(server: object) -> list[str] | None:
    """The command of a server in the usual JSON or TOML form that a tee should stand before.

    None for one over HTTP, or one that is behind a tee already.
    """
    if not isinstance(server, dict) or not isinstance(server.get("command"), str):
        return None
    args = server.get("args", [])
    words = [server["command"], *(str(arg) for arg in args if isinstance(args, list))]
    behind = Path(words[0]).name == "stumble" and words[1:2] == ["mcp"]
    return None if behind else words


def by_name(table: object) -> Iterator[tuple[str, dict[str, object]]]:
    """The servers of a settings table; nothing where it is none."""
    if isinstance(table, dict):
        for name, server in table.items():
            if isinstance(server, dict):
                yield str(name), server


def unseen(agent: str, names: Sequence[str]) -> tuple[str, ...]:
    """The one line for servers that cannot be put behind a tee here; none where there are none."""
    if not names:
        return ()
    each = ", ".join(names)
    return (
        f"{agent}: nothing will be seen of the stdio MCP server{'s' * (len(names) > 1)} {each}; "
        "put `stumble mcp --` before the command in its settings",
    )
