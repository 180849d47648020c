"""tau-bench result files: runs in OpenAI messages with tool results and a final reward.

One step is one message of the system, the user or the agent; every tool call stands alone in
its message, as the benchmark runs them. Its environment catches whatever a tool raises and
returns it as text, so a call failed if and only if its result begins with `Error`. A run is over
when the simulated user says so or is handed to a human; any other end is its cap of 30 steps.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import orjson
import pyarrow as pa

from traces.formats.files import content, head
from traces.formats.rows import Row, Rows
from traces.formats.rows import call as call_row
from traces.formats.rows import message as message_row
from traces.relations import row

NAME = "tau-bench runs (a JSON list of objects with task_id, reward, traj, trial)"

_NAMED = re.compile(r"(?P<model>.+)-(?P<domain>airline|retail)\.json")
_READERS = ("get_", "search_", "find_", "list_", "calculate", "think")
"""How the names begin of the tools that change nothing."""


class Function(TypedDict):
    name: str
    arguments: str


class Call(TypedDict):
    id: str
    function: Function


class Message(TypedDict, total=False):
    role: str
    content: str | None
    tool_calls: list[Call] | None
    tool_call_id: str
    name: str


class Run(TypedDict):
    task_id: int
    trial: int
    reward: float
    traj: list[Message]


def fits(path: Path) -> bool:
    """Whether a file, gzipped or not, begins like a list of runs."""
    start = head(path)
    return start.lstrip()[:1] == b"[" and all(
        re.search(rb'"%s"\s*:' % key, start) for key in (b"task_id", b"reward")
    )


def tables(path: Path) -> Mapping[str, pa.Table]:
    """The runs as trajectories, steps, tool calls and messages; model and domain by file name."""
    runs: list[Run] = orjson.loads(content(path))
    named = _NAMED.match(path.name)
    model, domain = (named["model"], named["domain"]) if named else (None, None)
    rows = Rows()
    for run in runs:
        _run(rows, run, model, domain)
    return rows.tables()


def _run(rows: Rows, run: Run, model: str | None, domain: str | None) -> None:
    whole = orjson.dumps(run, option=orjson.OPT_SORT_KEYS)
    trajectory = f"tau-{hashlib.sha256(whole).hexdigest()[:16]}"
    said = run["traj"]
    requests = 1 + sum(each["role"] == "assistant" for each in said)
    step, request = 0, 1
    for position, message in enumerate(said):
        role, text = message["role"], message.get("content")
        calls = message.get("tool_calls") or []
        rows.messages.append(
            message_row(trajectory, request, position, requests, role, text, calls)
        )
        if role == "tool":
            continue
        step += 1
        source, by = ("agent", model) if role == "assistant" else (role, None)
        rows.steps.append((trajectory, step, source, text or "", by, None))
        for call in calls:
            rows.tool_calls.append(
                _call(trajectory, step, call, _result(said[position + 1 :], call))
            )
        request += role == "assistant"
    rows.trajectories.append(_trajectory(trajectory, run, model, domain, requests - 1))


def _result(later: list[Message], call: Call) -> str | None:
    """The result is the next message with that id: some runs use one id for several calls."""
    answers = (each for each in later if each.get("tool_call_id") == call["id"])
    answer = next(answers, None)
    return None if answer is None else answer.get("content") or ""


def _call(trajectory: str, step: int, call: Call, result: str | None) -> Row:
    tool, arguments = call["function"]["name"], call["function"]["arguments"]
    known: dict[str, object] = {
        "trajectory_id": trajectory,
        "step": step,
        "call_id": call["id"],
        "tool": tool,
        "is_error": None if result is None else result.startswith("Error"),
        "read_only": tool.startswith(_READERS),
    }
    return call_row(known, arguments, result)


def _trajectory(
    trajectory: str, run: Run, model: str | None, domain: str | None, n_steps: int
) -> Row:
    last = run["traj"][-1]
    over = "###STOP###" in (last.get("content") or "")
    over = over or last.get("name") == "transfer_to_human_agents"
    known = {
        "trajectory_id": trajectory,
        "agent": "tau-bench",
        "model": model,
        "scenario": f"tau-{domain}" if domain else "tau",
        "task": str(run["task_id"]),
        "trial": run["trial"],
        "condition": "clean",
        "world": "fresh",
        "source": "tau",
        "n_steps": n_steps,
        "passed": run["reward"] >= 1,
        "reward": run["reward"],
        "ended": "final" if over else "budget",
        "verifier": "tau-bench reward",
    }
    return row("trajectories", known)
