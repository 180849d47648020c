"""Import tau-bench result files: runs as OpenAI messages with tool results and a final reward.

One step is one message of the system, the user or the agent; every tool call is alone in its
message, as the benchmark runs them. Its environment catches any exception of a tool and returns it
as text, so a call failed if and only if its result begins with `Error`. A run is over when the
simulated user ends it or is transferred to a human; any other end is its cap of 30 steps.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import orjson
import pyarrow as pa

from traces.importers.shared.conversation_rows import (
    ConversationRows,
    Row,
    make_call_row,
    make_message_row,
)
from traces.importers.shared.file_reader import read_file_head, read_unpacked_file
from traces.store.schema import make_relation_row

NAME = "tau-bench runs (a JSON list of objects with task_id, reward, traj, trial)"

_NAMED = re.compile(r"(?P<model>.+)-(?P<domain>airline|retail)\.json")
_READERS = ("get_", "search_", "find_", "list_", "calculate", "think")
"""Name prefixes of the tools that change nothing."""


class TauBenchFunction(TypedDict):
    name: str
    arguments: str


class TauBenchCall(TypedDict):
    id: str
    function: TauBenchFunction


class TauBenchMessage(TypedDict, total=False):
    role: str
    content: str | None
    tool_calls: list[TauBenchCall] | None
    tool_call_id: str
    name: str


class TauBenchRun(TypedDict):
    task_id: int
    trial: int
    reward: float
    traj: list[TauBenchMessage]


def can_import(path: Path) -> bool:
    """Whether a file, gzipped or not, begins like a list of runs."""
    start = read_file_head(path)
    return start.lstrip()[:1] == b"[" and all(
        re.search(rb'"%s"\s*:' % key, start) for key in (b"task_id", b"reward")
    )


def read_tables(path: Path) -> Mapping[str, pa.Table]:
    """Read trajectories, steps, tool calls and messages; model and domain by file name."""
    runs: list[TauBenchRun] = orjson.loads(read_unpacked_file(path))
    match = _NAMED.match(path.name)
    model, domain = (match["model"], match["domain"]) if match else (None, None)
    rows = ConversationRows()
    for run in runs:
        _add_tau_bench_run(rows, run, model, domain)
    return rows.to_tables()


def _add_tau_bench_run(
    rows: ConversationRows, run: TauBenchRun, model: str | None, domain: str | None
) -> None:
    canonical = orjson.dumps(run, option=orjson.OPT_SORT_KEYS)
    trajectory = f"tau-{hashlib.sha256(canonical).hexdigest()[:16]}"
    messages = run["traj"]
    requests = 1 + sum(each["role"] == "assistant" for each in messages)
    step, request = 0, 1
    for position, message in enumerate(messages):
        role, text = message["role"], message.get("content")
        calls = message.get("tool_calls") or []
        rows.messages.append(
            make_message_row(trajectory, request, position, requests, role, text, calls)
        )
        if role == "tool":
            continue
        step += 1
        source, step_model = ("agent", model) if role == "assistant" else (role, None)
        rows.steps.append((trajectory, step, source, text or "", step_model, None))
        for call in calls:
            rows.tool_calls.append(
                _to_tau_bench_call_row(
                    trajectory, step, call, _find_call_result(messages[position + 1 :], call)
                )
            )
        request += role == "assistant"
    rows.trajectories.append(_to_tau_bench_trajectory(trajectory, run, model, domain, requests - 1))


def _find_call_result(later: list[TauBenchMessage], call: TauBenchCall) -> str | None:
    """Return the text of the next message with the call's id: some runs reuse one id."""
    results = (each for each in later if each.get("tool_call_id") == call["id"])
    result = next(results, None)
    return None if result is None else result.get("content") or ""


def _to_tau_bench_call_row(
    trajectory: str, step: int, call: TauBenchCall, result: str | None
) -> Row:
    tool, arguments = call["function"]["name"], call["function"]["arguments"]
    fields: dict[str, object] = {
        "trajectory_id": trajectory,
        "step": step,
        "call_id": call["id"],
        "tool": tool,
        "is_error": None if result is None else result.startswith("Error"),
        "read_only": tool.startswith(_READERS),
    }
    return make_call_row(fields, arguments, result)


def _to_tau_bench_trajectory(
    trajectory: str, run: TauBenchRun, model: str | None, domain: str | None, n_steps: int
) -> Row:
    last = run["traj"][-1]
    is_over = "###STOP###" in (last.get("content") or "")
    is_over = is_over or last.get("name") == "transfer_to_human_agents"
    fields = {
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
        "ended": "final" if is_over else "budget",
        "verifier": "tau-bench reward",
    }
    return make_relation_row("trajectories", fields)
