"""The commands by job, with the line that `stumble --help` prints for each.

A command named NAME is a click command in `stumble/cli/JOB/NAME.py`; JOB is the folder of its
group. `stumble --help` reads this table alone and imports no command. A name that is not in it may
be a command of an extension (`stumble/extensions.py`).
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

import click

from stumble.errors import UsageError

COMMAND_GROUPS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Record and replay": {
            "doctor": "Check which traffic of an agent would be recorded, offline.",
            "record": "Run an agent and record its traffic.",
            "show": "List the steps of a recording.",
            "replay": "Run an agent against its recording, offline.",
            "accept": "Accept the volatile values that differed in a replay.",
            "redrive": "Send recorded tool calls to a real service and report drift.",
            "pack": "Write a recording with its workspace into one portable file.",
            "unpack": "Put the recordings of packs into a store or a folder.",
            "mcp": "Record an MCP server on stdio, or replay one.",
        },
        "Inject and judge": {
            "check": "Find how an agent fails, in one command.",
            "faults": "List the faults, or explain one.",
            "fork": "Replay up to one call, inject a fault, continue live, and judge.",
            "campaign": "Inject many faults into many recordings.",
            "scenarios": "List the scenarios, or explain one.",
            "run": "Run a scenario: record, inject, compare, judge.",
            "why": "Show the evidence for a verdict.",
            "mcp-store": "Serve the store to coding agents as MCP tools.",
            "shrink": "Find the fewest and earliest faults that break a run.",
            "probe": "Ask a model for its next step after a faulted tool result.",
            "judge": "Ask a model for second opinions on verdicts; calibrate claims.",
        },
        "Numbers": {
            "report": "Report rates, survival and costs, as a page or in the terminal.",
            "ui": "Browse runs and verdicts in a browser, and inject faults.",
            "gate": "Pass or fail by limits on rates, using their intervals.",
            "compare": "Compare two campaigns, models or agents.",
            "drift": "Name what changed significantly in the last days.",
            "sql": "Query all recorded data with SQL.",
            "import": "Import recordings made by other tools.",
            "collect": "Take spans from OpenTelemetry exporters; they become runs.",
            "forget": "Remove imported runs.",
            "export": "Export runs in other formats.",
            "bench": "Run stumble-bench 1: fixed tasks and faults, one table.",
        },
        "Compiler pipeline": {
            "pipeline": "Run an agent through six compiler stages and grade it.",
            "leaderboard": "Rank agents and models by pipeline score, cost and recovery.",
            "sandbox": "Build and check the sandbox for pipeline agents.",
            "agent": "Run the built-in agent (a shell and an editor).",
        },
        "Practice and upkeep": {
            "quickstart": "Replay and judge a packed run: five seconds, no key, no server.",
            "init": "Look at a project and write its stumble.toml and first scenario.",
            "demo": "Record, replay and inject in the practice world; no key, no network.",
            "practice": "Serve a shop and a scripted model for trying commands.",
            "scan": "Find secrets in a store, a recording or any folder.",
            "scrub": "Remove secrets from a recording.",
            "prune": "Remove old runs from the store.",
            "push": "Copy the store's recordings to a team's bucket (s3://).",
            "pull": "Copy recordings from a team's bucket into the store.",
            "ca": "Show or replace the certificate authority.",
            "completion": "Print the completion script of a shell.",
            "selftest": "Verify the guarantees of replay on this machine.",
            "extensions": "List commands and engines that installed packages add.",
        },
    }
)

COMMANDS: Mapping[str, str] = MappingProxyType(
    {name: line for group in COMMAND_GROUPS.values() for name, line in group.items()}
)

OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "list": "sql runs",
        "ls": "sql runs",
        "runs": "sql runs",
        "log": "sql runs",
        "inject": "fork",
        "test": "check",
        "verify": "check",
        "diff": "compare",
        "results": "report",
        "stats": "report",
        "view": "ui",
        "help": "--help",
        "version": "--version",
    }
)
"""Names of other tools' commands -> what they are called here."""

JOB_FOLDERS: Mapping[str, str] = MappingProxyType(
    {
        "Record and replay": "record_replay",
        "Inject and judge": "inject_judge",
        "Numbers": "numbers",
        "Compiler pipeline": "pipeline",
        "Practice and upkeep": "upkeep",
    }
)
"""Group title -> the package under `stumble.cli` with its commands."""

_FOLDERS = {name: JOB_FOLDERS[job] for job, group in COMMAND_GROUPS.items() for name in group}
_MODULES = {"import": "import_command", "mcp-store": "mcp_store"}
"""Commands whose name is no Python name -> name of their module and function."""


def load_command(name: str) -> click.Command:
    """Import and return the click command `name`. Raises KeyError if COMMANDS lacks it."""
    word = _MODULES.get(name, name)
    command = getattr(import_module(f"stumble.cli.{_FOLDERS[name]}.{word}"), word)
    assert isinstance(command, click.Command), name
    return command


def find_command(name: str) -> click.Command | None:
    """Return a command of the table or of an extension; None if neither has it.

    Raises UsageError if the extension cannot be loaded.
    """
    if name in COMMANDS:
        return load_command(name)
    from stumble.extensions import find_extension

    found = find_extension("stumble.commands", name)
    if found is not None and not isinstance(found, click.Command):
        raise UsageError(f"the extension {name!r} is no click command")
    return found


def list_command_names() -> tuple[str, ...]:
    """Return the names of all commands, those of extensions last."""
    from stumble.extensions import list_extensions

    return tuple(
        dict.fromkeys((*COMMANDS, *(each.name for each in list_extensions("stumble.commands"))))
    )
