"""How agents offer a shell to a model: the tool's name, and where in its arguments the command is.

Wire facts, seen on the versions that tests/agents pins: mini-swe-agent 2 and most programs on
an SDK offer `bash` with {"command"}, Claude Code `Bash` with the same, Codex `exec_command` with
{"cmd"}, or `shell_command` with {"command"} where it has no terminal of its own, Gemini CLI and
qwen-code `run_shell_command`, OpenHands `terminal`. Some demand more arguments: opencode's `bash`
wants a `description`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

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
    more: Mapping[str, Json] = field(default_factory=dict)
    """What else the agent demands."""

    def written(self, arguments: Mapping[str, Json]) -> str:
        """A plan's arguments as this agent wants them."""
        return json.dumps({self.command: arguments["command"], **self.more}) if arguments else "{}"

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
    Shell(tool="run_shell_command"),
    Shell(tool="terminal"),
)
_FILLED: Mapping[str, Json] = {"string": "a step of the task", "boolean": False, "integer": 60}
"""What is said for an argument that a plan knows nothing of, by its type."""


def offered(tools: Sequence[Row]) -> Shell | None:
    """The shell among the tools of a request, by its exact name."""
    functions = [function for tool in tools if isinstance(function := tool.get("function"), dict)]
    named = {str(function.get("name")): function for function in functions}
    for shell in SHELLS:
        if shell.tool in named:
            return replace(shell, more=_more(shell, named[shell.tool].get("parameters")))
    return None


def _more(shell: Shell, parameters: Json) -> dict[str, Json]:
    asked = parameters if isinstance(parameters, dict) else {}
    required, known = asked.get("required"), asked.get("properties")
    types = known if isinstance(known, dict) else {}
    return {
        name: _filled(given)
        for name in (required if isinstance(required, list) else ())
        if isinstance(name, str) and name != shell.command
        if isinstance(given := types.get(name), dict)
    }


def _filled(asked: Mapping[str, Json]) -> Json:
    choices = asked.get("enum")
    return choices[0] if isinstance(choices, list) else _FILLED.get(str(asked.get("type")).lower())
