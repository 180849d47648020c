"""How agents offer a shell to a model: the tool's name and the argument that holds the command.

Wire facts, observed on the versions that tests/agents pins: mini-swe-agent 2 and most programs on
an SDK offer `bash` with {"command"}, Claude Code `Bash` with the same, Codex `exec_command` with
{"cmd"}, or `shell_command` with {"command"} if it has no terminal, Gemini CLI and qwen-code
`run_shell_command`, OpenHands `terminal`, gptme `shell`, Grok Build 1.0 `run_terminal_command`,
Cline 3.0 `run_commands` with a list of them. Some require more arguments: opencode's `bash`
requires a `description`.
"""

import json
from collections.abc import Mapping, Sequence
from copy import replace

from msgspec import Struct, field

from scenarios.practice.tools.json_schema import Json, JsonRow

BASH = "bash"
"""Name of the shell in plans, whatever the agent calls it."""
DELEGATE = "Agent"
"""Claude Code's tool that has a subagent work on a prompt; it returns a text."""


class ShellTool(Struct, frozen=True, kw_only=True):
    """One way to offer a shell."""

    tool: str
    command_argument: str = "command"
    """The argument that holds the command."""
    in_list: bool = False
    """Whether that argument is a list of commands."""
    extra_arguments: Mapping[str, Json] = field(default_factory=dict)
    """Other arguments that the agent requires."""

    def to_agent_arguments(self, arguments: Mapping[str, Json]) -> str:
        """Convert a plan's arguments to this agent's."""
        if not arguments:
            return "{}"
        command = [arguments["command"]] if self.in_list else arguments["command"]
        return json.dumps({self.command_argument: command, **self.extra_arguments})

    def to_plan_arguments(self, arguments: str) -> str:
        """Convert this agent's arguments to a plan's; text that is not a JSON object is
        unchanged.
        """
        try:
            parsed = json.loads(arguments)
        except ValueError:
            return arguments
        if not isinstance(parsed, dict) or self.command_argument not in parsed:
            return arguments
        command = parsed[self.command_argument]
        return json.dumps({"command": command[0] if self.in_list and command else command})


SHELL_TOOLS = (
    ShellTool(tool=BASH),
    ShellTool(tool="Bash"),
    ShellTool(tool="exec_command", command_argument="cmd"),
    ShellTool(tool="shell_command"),
    ShellTool(tool="run_shell_command"),
    ShellTool(tool="terminal"),
    ShellTool(tool="shell"),
    ShellTool(tool="run_terminal_command"),
    ShellTool(tool="run_commands", command_argument="commands", in_list=True),
)
_DEFAULT_ARGUMENTS: Mapping[str, Json] = {
    "string": "a step of the task",
    "boolean": False,
    "integer": 60,
}
"""Values for arguments that a plan does not know, by type."""


def find_shell_tool(tools: Sequence[JsonRow]) -> ShellTool | None:
    """Return the shell among the tools of a request, found by its exact name."""
    functions = [function for tool in tools if isinstance(function := tool.get("function"), dict)]
    by_name = {str(function.get("name")): function for function in functions}
    for shell in SHELL_TOOLS:
        if shell.tool in by_name:
            return replace(
                shell,
                extra_arguments=_fill_extra_arguments(shell, by_name[shell.tool].get("parameters")),
            )
    return None


def _fill_extra_arguments(shell: ShellTool, parameters: Json) -> dict[str, Json]:
    schema = parameters if isinstance(parameters, dict) else {}
    required, known = schema.get("required"), schema.get("properties")
    types = known if isinstance(known, dict) else {}
    return {
        name: _make_default_argument(argument_schema)
        for name in (required if isinstance(required, list) else ())
        if isinstance(name, str) and name != shell.command_argument
        if isinstance(argument_schema := types.get(name), dict)
    }


def _make_default_argument(asked: Mapping[str, Json]) -> Json:
    choices = asked.get("enum")
    return (
        choices[0]
        if isinstance(choices, list)
        else _DEFAULT_ARGUMENTS.get(str(asked.get("type")).lower())
    )
