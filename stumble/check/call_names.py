"""Calls by what they do: a tool that runs commands is as many tools as it runs programs."""

from collections.abc import Mapping

from faults.judging.command_names import list_commands
from faults.judging.sent_writes import is_write_request
from traces.conversation.derived_steps import DerivedSteps, ToolUse
from traces.tape.reader import Tape

MAX_COMMANDS = 3
"""Most commands in the name of a call."""


def name_call(use: ToolUse, recording: Tape) -> str:
    """Return `book_slot`, or `Bash (cat, git push)` for a tool that runs commands.

    Commands that send a write get a name of their own: `Bash (curl; writes)`.
    """
    names = sorted(" ".join(filter(None, each)) for each in list_commands(use.arguments))
    writes = "; writes" if has_write(use, recording) else ""
    return f"{use.tool} ({', '.join(names[:MAX_COMMANDS])}{writes})" if names else use.tool


def has_write(use: ToolUse, recording: Tape) -> bool:
    """Return whether a call sent a request that may change something."""
    sent = (each.request for each in recording.exchanges if each.seq in use.seqs)
    return any(is_write_request(each, read_only=use.read_only) for each in sent)


def group_calls(steps: DerivedSteps, recording: Tape) -> Mapping[str, tuple[ToolUse, ...]]:
    """Return the calls of a recording by name, ordered by the last call of each."""
    grouped = dict[str, tuple[ToolUse, ...]]()
    for use in steps.tool_uses:
        name = name_call(use, recording)
        grouped[name] = (*grouped.pop(name, ()), use)
    return grouped


def find_call(steps: DerivedSteps, call_id: str | None) -> ToolUse | None:
    """Return the call of this id."""
    return next((use for use in steps.tool_uses if use.call_id == call_id), None)


def count_call(steps: DerivedSteps, call: ToolUse) -> int:
    """Return which call of its tool this one is, from 1."""
    same = [use.call_id for use in steps.tool_uses if use.tool == call.tool]
    return same.index(call.call_id) + 1
