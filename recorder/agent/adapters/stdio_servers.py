"""A stdio server in an agent's settings, and its command behind a run's tee."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from recorder.mcp import tee


class AdapterContext(Struct, frozen=True, kw_only=True):
    """The inputs of an adapter: the agent's environment and folders, and the run's socket."""

    env: Mapping[str, str]
    socket: Path
    folder: Path
    cwd: Path

    def find_folder(self, variable: str, default: str) -> Path:
        """Return the folder that an environment variable names, or the default in HOME."""
        home = Path(self.env.get("HOME") or Path.home())
        return Path(self.env.get(variable) or home / default)

    def wrap_in_tee(self, name: str, command: Sequence[str]) -> list[str]:
        """Return a server's command wrapped in this run's tee."""
        program = str(Path(tee.__file__).absolute())
        words = [sys.executable, "-I", "-S", program, "--name", name, "--run", str(self.socket)]
        return [*words, "--", *command]


class AdaptedCommand(Struct, frozen=True, kw_only=True):
    """The agent's command with its servers behind tees, and warnings."""

    command: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """Which servers will not be recorded, and what to do."""


def parse_stdio_command(server: object) -> list[str] | None:
    """Return the command of a server in the usual JSON or TOML form that needs a tee.

    None for a server over HTTP, or one already behind a tee.
    """
    if not isinstance(server, dict) or not isinstance(server.get("command"), str):
        return None
    args = server.get("args", [])
    words = [server["command"], *(str(arg) for arg in args if isinstance(args, list))]
    behind = Path(words[0]).name == "stumble" and words[1:2] == ["mcp"]
    return None if behind else words


def iter_servers_by_name(table: object) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the servers of a settings table; nothing if it is not a table."""
    if isinstance(table, dict):
        for name, server in table.items():
            if isinstance(server, dict):
                yield str(name), server


def format_unseen_warning(agent: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return one warning line for servers that cannot be put behind a tee; empty without any."""
    if not names:
        return ()
    each = ", ".join(names)
    return (
        f"{agent}: nothing will be seen of the stdio MCP server{'s' * (len(names) > 1)} {each}; "
        "put `stumble mcp --` before the command in its settings",
    )
