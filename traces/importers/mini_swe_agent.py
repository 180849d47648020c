"""Import mini-swe-agent runs: a trajectory file of the agent, or many runs as JSON lines.

Version 1 writes calls as text: exactly one fenced shell block in a response is a call, and the user
message after it is the result, which begins with `<returncode>N</returncode>` if the command
finished. The agent refuses any other response with a message to the model; it is no call. Version 2
uses tool calls, of chat completions or of the responses API, with results that name their call, or
text whose commands it lists in `extra.actions`; `extra.returncode` of a result is its exit code. A
command that failed to run, or timed out, failed.

Lines of many runs have `instance_id`, `resolved`, `exit_status` and `messages`; a trajectory file
has `info` and `trajectory_format` instead, and does not record whether the task was resolved.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import orjson

from traces.dialects.mini_swe_agent import TOOL, find_shell_blocks
from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
    iter_openai_calls,
)
from traces.importers.shared.file_reader import read_file_head, read_unpacked_file
from traces.importers.shared.finish_reason import find_finish_reason
from traces.importers.shared.json_values import (
    join_text_parts,
    require_objects,
    to_object,
    to_objects,
)
from traces.importers.shared.jsonl import iter_json_records
from traces.importers.shared.run_reader import ImportNotes, RawRun
from traces.importers.shared.session_times import subtract_times

NAME = "mini-swe-agent runs (a .traj.json, or JSON lines with instance_id and messages)"
SPLITS = frozenset(("lines",))
"""What of a file are runs of their own: its lines, or the elements of its list."""

type Table = dict[str, object]

_RETURNED = re.compile(r"\s*<returncode>(-?\d+)</returncode>")
_TIMED_OUT = re.compile(r"\s*The last command <command>.*</command> timed out", re.DOTALL)
_ENDS: Mapping[str, str] = {"Submitted": "final", "LimitsExceeded": "budget"}
"""Maps `exit_status` to an ending; any other status is the name of an exception."""


def can_import(path: Path) -> bool:
    """Whether a file begins like a trajectory of the agent, or like a line of many."""
    start = read_file_head(path)
    if start.lstrip()[:1] != b"{":
        return False
    if b'"instance_id"' in start and b'"exit_status"' in start and b'"messages"' in start:
        return True
    return (b'"exit_status"' in start or b'"trajectory_format"' in start) and (
        b'"mini_version"' in start or b'"mini_version"' in read_unpacked_file(path)
    )


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the runs of a file."""
    for where, document in iter_json_records(path):
        yield RawRun(where=where, read=partial(_read_run, document))


def _read_run(document: object, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    run = to_object(document)
    messages = require_objects(run.get("messages"), "messages")
    info, reward = to_object(run.get("info")), run.get("resolved")
    status = run.get("exit_status") or info.get("exit_status")
    stats = to_object(info.get("model_stats"))
    facts = {
        "agent": "mini-swe-agent",
        "scenario": "swe-bench" if reward is not None else None,
        "task": run.get("instance_id"),
        "world": "fresh",
        "passed": reward,
        "ended": _ENDS.get(status, "crash") if isinstance(status, str) and status else None,
        "cost_usd": run.get("cost") if "cost" in run else stats.get("instance_cost"),
        "verifier": "resolved" if reward is not None else None,
    }
    read = tuple(_read_messages(messages, notes))
    return ImportedConversation(
        source="mini-swe", messages=read, facts=facts, key=run.get("instance_id")
    )


def _read_messages(messages: list[Table], notes: ImportNotes) -> Iterator[ConversationMessage]:
    waiting: list[str] = []
    answered: float | None = None
    for position, each in enumerate(messages):
        role = _read_role(each)
        if role == "assistant":
            calls = _read_calls(each, position)
            waiting = [call.id for call in calls]
            answered = _read_time(each) if len(calls) == 1 else None  # results come together
            yield _to_answer(each, calls)
        elif role == "tool" or (role == "user" and waiting):
            given = each.get("tool_call_id") or each.get("call_id")
            call_id = str(given) if given else waiting[0] if waiting else ""
            waiting = [id for id in waiting if id != call_id]
            text = join_text_parts(each.get("content", each.get("output")))
            failed = _is_failed(to_object(each.get("extra")), text)
            took = subtract_times(_read_time(each), answered)
            yield ConversationMessage(
                role="tool", text=text, call_id=call_id, is_error=failed, seconds=took
            )
        elif role in ("system", "user"):
            yield ConversationMessage(role=role, text=join_text_parts(each.get("content")))
        elif role != "exit":  # which repeats the exit status and the submission
            notes.skip(f"messages of role {role}")


def _read_time(message: Table) -> float | None:
    at = to_object(message.get("extra")).get("timestamp", message.get("timestamp"))
    return float(at) if isinstance(at, int | float) else None


def _read_role(message: Table) -> str:
    """Return the role; messages of the responses API have none."""
    if message.get("object") == "response" or message.get("type") == "message":
        return str(message.get("role") or "assistant")
    if message.get("type") == "function_call_output":
        return "tool"
    return str(message.get("role"))


def _read_calls(message: Table, position: int) -> tuple[ConversationCall, ...]:
    """Return the calls of a response: its tool calls, else the commands in its text."""
    calls = tuple(iter_openai_calls(message.get("tool_calls")))
    items = to_objects(message.get("output"))
    calls = calls or tuple(
        ConversationCall(
            id=str(item.get("call_id")),
            tool=str(item.get("name")),
            arguments=str(item.get("arguments")),
        )
        for item in items
        if item.get("type") == "function_call"
    )
    if calls:
        return calls
    extra = to_object(message.get("extra"))
    if "actions" in extra:
        commands = [str(each.get("command")) for each in to_objects(extra["actions"])]
    else:
        blocks = find_shell_blocks(join_text_parts(message.get("content")))
        commands = [blocks[0].strip()] if len(blocks) == 1 else []
    return tuple(
        ConversationCall(
            id=f"{TOOL}-{position + 1}" + (f".{place}" if place else ""),
            tool=TOOL,
            arguments=orjson.dumps({"command": command}).decode(),
        )
        for place, command in enumerate(commands)
    )


def _to_answer(message: Table, calls: tuple[ConversationCall, ...]) -> ConversationMessage:
    extra = to_object(message.get("extra"))
    reply = to_object(extra.get("response"))
    reply = reply or (message if message.get("object") == "response" else {})
    usage = to_object(message.get("usage") or reply.get("usage"))
    text = join_text_parts(message.get("content")) or "\n".join(
        join_text_parts(item.get("content")) for item in to_objects(message.get("output"))
    )
    model = reply.get("model")
    return ConversationMessage(
        role="assistant",
        text=text.strip("\n") if not message.get("content") else text,
        model=str(model) if model else None,
        calls=calls,
        usage=_read_usage(usage, extra) if usage else {},
        finish=find_finish_reason(reply),
    )


def _read_usage(usage: Table, extra: Table) -> dict[str, object]:
    prompt = usage.get("prompt_tokens", usage.get("input_tokens"))
    detail = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
    done = usage.get("completion_tokens_details", usage.get("output_tokens_details"))
    cost = usage.get("cost")
    return {
        "prompt_tokens": prompt,
        "cached_tokens": to_object(detail).get("cached_tokens"),
        "completion_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
        "reasoning_tokens": to_object(done).get("reasoning_tokens"),
        "cost_reported_usd": extra.get("cost") if cost is None else cost,
    }


def _is_failed(extra: Table, text: str) -> bool | None:
    if extra.get("exception_info"):
        return True
    code = extra.get("returncode")
    if isinstance(code, int):
        return code != 0
    if returned := _RETURNED.match(text):
        return returned[1] != "0"
    return True if _TIMED_OUT.match(text) else None
