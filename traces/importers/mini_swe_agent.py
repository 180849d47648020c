"""Import mini-swe-agent runs: a trajectory file of the agent, or many runs as JSON lines.

Each response of the model is a step. Exactly one fenced shell block in it is a call, and the user
message after it is the result, which begins with `<returncode>N</returncode>` if the command
finished. The agent refuses any other response with a message to the model; it is no call. A command
that timed out failed. Lines of many runs have `instance_id`, `resolved`, `exit_status` and
`messages`; a trajectory file has `info` and `trajectory_format` instead, and does not record
whether the task was resolved.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, cast

import orjson
import pyarrow as pa

from traces.dialects.mini_swe_agent import TOOL, find_shell_blocks
from traces.importers.shared.conversation_rows import (
    ConversationRows,
    Row,
    make_call_row,
    make_message_row,
)
from traces.importers.shared.file_reader import read_file_head, read_unpacked_file
from traces.importers.shared.jsonl import read_json_documents
from traces.store.schema import make_relation_row

NAME = "mini-swe-agent runs (a .traj.json, or JSON lines with instance_id and messages)"

_RETURNED = re.compile(r"\s*<returncode>(-?\d+)</returncode>")
_TIMED_OUT = re.compile(r"\s*The last command <command>.*</command> timed out", re.DOTALL)
_ENDS: Mapping[str, str] = {"Submitted": "final", "LimitsExceeded": "budget"}
"""Maps `exit_status` to an ending; any other status is the name of an exception."""


class MiniSweUsage(TypedDict, total=False):
    """Usage and cost that a provider reported."""

    prompt_tokens: int
    completion_tokens: int
    cost: float


class MiniSweReply(TypedDict, total=False):
    model: str
    usage: MiniSweUsage


class MiniSweExtra(TypedDict, total=False):
    response: MiniSweReply


class MiniSweMessage(TypedDict, total=False):
    role: str
    content: str | None
    usage: MiniSweUsage
    extra: MiniSweExtra


class MiniSweRun(TypedDict, total=False):
    instance_id: str
    resolved: bool
    exit_status: str
    cost: float
    messages: list[MiniSweMessage]
    info: dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like a trajectory of the agent, or like a line of many."""
    start = read_file_head(path)
    if start.lstrip()[:1] != b"{":
        return False
    if b'"instance_id"' in start and b'"exit_status"' in start and b'"messages"' in start:
        return True
    return b'"exit_status"' in start and b'"mini_version"' in read_unpacked_file(path)


def read_tables(path: Path) -> Mapping[str, pa.Table]:
    """Read the runs as trajectories, steps, tool calls, messages and usage."""
    rows = ConversationRows()
    for run in read_json_documents(path):
        _add_mini_swe_run(rows, cast("MiniSweRun", run))
    return rows.to_tables()


def _add_mini_swe_run(rows: ConversationRows, run: MiniSweRun) -> None:
    canonical = orjson.dumps(run, option=orjson.OPT_SORT_KEYS)
    trajectory = f"mini-swe-{hashlib.sha256(canonical).hexdigest()[:16]}"
    messages = run["messages"]
    requests = sum(each["role"] == "assistant" for each in messages)
    step, request, model = 0, 1, None
    for position, each in enumerate(messages):
        role, text = each["role"], each.get("content") or ""
        is_result = position > 0 and _find_run_command(messages[position - 1]) is not None
        stored_role = "tool" if role == "user" and is_result else role
        rows.messages.append(
            make_message_row(trajectory, request, position, requests, stored_role, text)
        )
        if stored_role == "tool" or role not in ("system", "user", "assistant"):
            continue
        step += 1
        reply = each.get("extra", {}).get("response", {})
        response_model = reply.get("model") if role == "assistant" else None
        model = model or response_model
        source = "agent" if role == "assistant" else role
        rows.steps.append((trajectory, step, source, text, response_model, None))
        if role != "assistant":
            continue
        usage = each.get("usage") or reply.get("usage")
        if usage:
            rows.usage.append(_to_mini_swe_usage_row(trajectory, request, response_model, usage))
        command = _find_run_command(each)
        if command is not None:
            result = messages[position + 1].get("content") if position + 1 < len(messages) else None
            rows.tool_calls.append(_to_mini_swe_call_row(trajectory, step, command, result))
        request += 1
    rows.trajectories.append(_to_mini_swe_trajectory(trajectory, run, model, requests))


def _find_run_command(said: MiniSweMessage) -> str | None:
    """Return the command in a response that the agent would run; None unless exactly one."""
    if said["role"] != "assistant":
        return None
    blocks = find_shell_blocks(said.get("content") or "")
    return blocks[0].strip() if len(blocks) == 1 else None


def _to_mini_swe_call_row(trajectory: str, step: int, command: str, result: str | None) -> Row:
    returned = _RETURNED.match(result or "")
    is_error = returned[1] != "0" if returned else True if _TIMED_OUT.match(result or "") else None
    fields: dict[str, object] = {
        "trajectory_id": trajectory,
        "step": step,
        "call_id": f"{TOOL}-{step}",
        "tool": TOOL,
        "is_error": is_error,
    }
    return make_call_row(fields, orjson.dumps({"command": command}).decode(), result)


def _to_mini_swe_usage_row(
    trajectory: str, request: int, model: str | None, usage: MiniSweUsage
) -> Row:
    fields = {
        "trajectory_id": trajectory,
        "seq": request,
        "model": model,
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cost_reported_usd": usage.get("cost"),
    }
    return make_relation_row("usage", fields)


def _to_mini_swe_trajectory(
    trajectory: str, run: MiniSweRun, model: str | None, n_steps: int
) -> Row:
    info = run.get("info", {})
    status = run.get("exit_status") or info.get("exit_status")
    resolved = run.get("resolved")
    fields = {
        "trajectory_id": trajectory,
        "agent": "mini-swe-agent",
        "model": model,
        "scenario": "swe-bench" if resolved is not None else None,
        "task": run.get("instance_id"),
        "condition": "clean",
        "world": "fresh",
        "source": "mini-swe",
        "n_steps": n_steps,
        "passed": resolved,
        "ended": _ENDS.get(status, "crash") if isinstance(status, str) else None,
        "cost_usd": run.get("cost"),
        "verifier": "resolved" if resolved is not None else None,
    }
    return make_relation_row("trajectories", fields)
