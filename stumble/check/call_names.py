"""Calls by what they do: a tool that runs commands is as many tools as it runs programs."""

from collections.abc import Mapping

from faults.judging.command_names import list_commands
from traces.conversation.derived_steps import DerivedSteps, ToolUse

MAX_COMMANDS = 3
"""Most commands in the name of a call."""


def name_call(tool: str, arguments: str | None) -> str:
    """Return `book_slot`, or `Bash (cat, git push)` for a tool that runs commands."""
    names = sorted(" ".join(filter(None, each)) for each in list_commands(arguments or ""))
    return f"{tool} ({', '.join(names[:MAX_COMMANDS])})" if names else tool


def group_calls(steps: DerivedSteps) -> Mapping[str, tuple[ToolUse, ...]]:
    """Return the calls of a recording by name, in order."""
    grouped = dict[str, tuple[ToolUse, ...]]()
    for use in steps.tool_uses:
        name = name_call(use.tool, use.arguments)
        grouped[name] = (*grouped.get(name, ()), use)
    return grouped


def count_call(steps: DerivedSteps, call_id: str | None) -> int:
    """Return which call of its tool this one is, from 1; 0 if the run has no such call."""
    found = next((use for use in steps.tool_uses if use.call_id == call_id), None)
    same = [use.call_id for use in steps.tool_uses if found and use.tool == found.tool]
    return same.index(call_id) + 1 if call_id in same else 0
