"""mini-swe-agent runs: a trajectory file of the agent, or many runs with a JSON object a line.

Each answer of the model is a step; exactly one fenced shell block in it is a call, and the user
message after it is its result, which begins with `<returncode>N</returncode>` if the command came
to an end. Any other answer is refused by the agent, which is told so, and is no call. A command
that ran out of time gave an error. Lines of many runs have `instance_id`, `resolved`,
`exit_status` and `messages`; a trajectory file has `info` and `trajectory_format` instead, and
does not know whether the task was resolved.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, cast

import orjson
import pyarrow as pa

from traces.dialects.text_history import TOOL, commands
from traces.formats.files import content, head
from traces.formats.lines import documents
from traces.formats.rows import Row, Rows, call, message
from traces.relations import row

NAME = "mini-swe-agent runs (a .traj.json, or JSON lines with instance_id and messages)"

_RETURNED = re.compile(r"\s*<returncode>(-?\d+)</returncode>")
_TIMED_OUT = re.compile(r"\s*The last command <command>.*</command> timed out", re.DOTALL)
_ENDS: Mapping[str, str] = {"Submitted": "final", "LimitsExceeded": "budget"}
"""Of `exit_status`; any other is the name of an exception."""


class Told(TypedDict, total=False):
    """What a provider said beside the text."""

    prompt_tokens: int
    completion_tokens: int
    cost: float


class Reply(TypedDict, total=False):
    model: str
    usage: Told


class Extra(TypedDict, total=False):
    response: Reply


class Message(TypedDict, total=False):
    role: str
    content: str | None
    usage: Told
    extra: Extra


class Run(TypedDict, total=False):
    instance_id: str
    resolved: bool
    exit_status: str
    cost: float
    messages: list[Message]
    info: dict[str, object]


def fits(path: Path) -> bool:
    """Whether a file begins like a trajectory of the agent, or like a line of many."""
    start = head(path)
    if start.lstrip()[:1] != b"{":
        return False
    if b'"instance_id"' in start and b'"exit_status"' in start and b'"messages"' in start:
        return True
    return b'"exit_status"' in start and b'"mini_version"' in content(path)


def tables(path: Path) -> Mapping[str, pa.Table]:
    """The runs as trajectories, steps, tool calls, messages and usage."""
    rows = Rows()
    for run in documents(path):
        _run(rows, cast("Run", run))
    return rows.tables()


def _run(rows: Rows, run: Run) -> None:
    whole = orjson.dumps(run, option=orjson.OPT_SORT_KEYS)
    trajectory = f"mini-swe-{hashlib.sha256(whole).hexdigest()[:16]}"
    said = run["messages"]
    requests = sum(each["role"] == "assistant" for each in said)
    step, request, model = 0, 1, None
    for position, each in enumerate(said):
        role, text = each["role"], each.get("content") or ""
        answers = position > 0 and _command(said[position - 1]) is not None
        told = "tool" if role == "user" and answers else role
        rows.messages.append(message(trajectory, request, position, requests, told, text))
        if told == "tool" or role not in ("system", "user", "assistant"):
            continue
        step += 1
        reply = each.get("extra", {}).get("response", {})
        by = reply.get("model") if role == "assistant" else None
        model = model or by
        source = "agent" if role == "assistant" else role
        rows.steps.append((trajectory, step, source, text, by, None))
        if role != "assistant":
            continue
        usage = each.get("usage") or reply.get("usage")
        if usage:
            rows.usage.append(_usage(trajectory, request, by, usage))
        command = _command(each)
        if command is not None:
            result = said[position + 1].get("content") if position + 1 < len(said) else None
            rows.tool_calls.append(_call(trajectory, step, command, result))
        request += 1
    rows.trajectories.append(_trajectory(trajectory, run, model, requests))


def _command(said: Message) -> str | None:
    """The command of an answer that the agent would run."""
    if said["role"] != "assistant":
        return None
    found = commands(said.get("content") or "")
    return found[0].strip() if len(found) == 1 else None


def _call(trajectory: str, step: int, command: str, result: str | None) -> Row:
    returned = _RETURNED.match(result or "")
    ended = returned[1] != "0" if returned else True if _TIMED_OUT.match(result or "") else None
    known: dict[str, object] = {
        "trajectory_id": trajectory,
        "step": step,
        "call_id": f"{TOOL}-{step}",
        "tool": TOOL,
        "is_error": ended,
    }
    return call(known, orjson.dumps({"command": command}).decode(), result)


def _usage(trajectory: str, request: int, model: str | None, usage: Told) -> Row:
    known = {
        "trajectory_id": trajectory,
        "seq": request,
        "model": model,
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cost_reported_usd": usage.get("cost"),
    }
    return row("usage", known)


def _trajectory(trajectory: str, run: Run, model: str | None, n_steps: int) -> Row:
    info = run.get("info", {})
    status = run.get("exit_status") or info.get("exit_status")
    resolved = run.get("resolved")
    known = {
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
    return row("trajectories", known)
