"""How agents offer a shell to a model: the tool's name, and where in its arguments the command is.

Wire facts, seen on the versions that tests/agents pins: mini-swe-agent 2 and most programs on
an SDK offer `bash` with {"command"}, Claude Code `Bash` with the same, Codex `exec_command` with
{"cmd"}, or `shell_command` with {"command"} where it has no terminal of its own.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenarios.practice.schema import Json, Row

BASH = "bash"
"""What plans call the shell, whatever the agent calls it."""
DELEGATE = "Agent"
"""Claude Code's tool that lets another agent of its own work on a prompt; it returns a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """One way to offer a shell."""

    tool: str
    command: str = "command"
    """The argument that holds the command."""

    def written(self, arguments: Mapping[str, Json]) -> str:
        """A plan's arguments as this agent wants them."""
        return json.dumps({self.command: arguments["command"]})

    def plain(self, arguments: str) -> str:
        """This agent's arguments as the plan has them; what is no JSON object stays as it is."""
        try:
            given = json.loads(arguments)
        except ValueError:
            return arguments
        if not isinstance(given, dict) or self.command not in given:
            return arguments
        return json.dumps({"command": given[self.command]})


SHELLS = (
    Shell(tool=BASH),
    Shell(tool="Bash"),
    Shell(tool="exec_command", command="cmd"),
    Shell(tool="shell_command"),
)


def offered(tools: Sequence[Row]) -> Shell | None:
    """The shell among the tools of a request, by its exact name."""
    functions = [tool.get("function") for tool in tools]
    names = [each.get("name") for each in functions if isinstance(each, dict)]
    return next((shell for shell in SHELLS if shell.tool in names), None)
