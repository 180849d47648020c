"""Import SWE-agent trajectories (`INSTANCE.traj`), following its documentation of the format.

One step is one entry of `trajectory`: the model's response, the action parsed from it, and the
observation of the environment. Whether an action failed is not recorded. The first system and user
messages are in `history`. Costs and the exit status are in `info`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import pyarrow as pa

from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
    add_conversation,
)
from traces.importers.shared.conversation_rows import ConversationRows
from traces.importers.shared.file_reader import decode_file_name, read_file_head
from traces.importers.shared.jsonl import read_json_documents

NAME = "SWE-agent trajectories (a .traj with trajectory, history and info)"

TOOL = "bash"

type Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like a trajectory; those of mini-swe-agent have no `observation`."""
    start = read_file_head(path)
    return start.lstrip()[:1] == b"{" and b'"trajectory"' in start and b'"observation"' in start


def read_tables(path: Path) -> Mapping[str, pa.Table]:
    """Read the run as a trajectory, steps, tool calls and messages."""
    rows = ConversationRows()
    for document in read_json_documents(path):
        if not isinstance(document, dict) or not isinstance(document.get("trajectory"), list):
            raise ValueError("no list of steps under trajectory")
        add_conversation(
            rows, _to_swe_agent_conversation(document, decode_file_name(path).split(".traj")[0])
        )
    return rows.to_tables()


def _to_swe_agent_conversation(run: Table, task: str) -> ImportedConversation:
    info = _to_swe_agent_object(run.get("info"))
    facts = {
        "agent": "swe-agent",
        "task": task,
        "ended": _read_swe_agent_ending(info.get("exit_status")),
        "cost_usd": _to_swe_agent_object(info.get("model_stats")).get("instance_cost"),
        "tokens": _sum_swe_agent_tokens(_to_swe_agent_object(info.get("model_stats"))),
        "seconds": _sum_execution_times(run),
    }
    return ImportedConversation(
        source="swe-agent",
        messages=tuple(_read_swe_agent_messages(run)),
        facts=facts,
        source_data=run,
    )


def _read_swe_agent_messages(run: Table) -> Iterator[ConversationMessage]:
    history = run.get("history")
    for each in history if isinstance(history, list) else ():
        role = _to_swe_agent_object(each).get("role")
        if role not in ("system", "user"):
            break
        yield ConversationMessage(role=str(role), text=_join_swe_agent_text(each.get("content")))
    steps = run["trajectory"]
    for number, each in enumerate(steps if isinstance(steps, list) else (), 1):
        step, calls = _to_swe_agent_object(each), list[ConversationCall]()
        action = _join_swe_agent_text(step.get("action")).strip()
        if action:
            arguments = orjson.dumps({"command": action}).decode()
            calls.append(ConversationCall(id=f"{TOOL}-{number}", tool=TOOL, arguments=arguments))
        text = _join_swe_agent_text(step.get("response")) or _join_swe_agent_text(
            step.get("thought")
        )
        yield ConversationMessage(role="assistant", text=text, calls=tuple(calls))
        if action and step.get("observation") is not None:
            text = _join_swe_agent_text(step.get("observation"))
            yield ConversationMessage(role="tool", text=text, call_id=f"{TOOL}-{number}")


def _read_swe_agent_ending(status: object) -> str | None:
    if not isinstance(status, str) or not status:
        return None
    if status == "submitted":
        return "final"
    # `submitted (exit_cost)`: the unfinished patch was submitted when the budget ran out.
    is_budget = any(each in status for each in ("exit_cost", "exit_context", "exit_total", "time"))
    return "budget" if is_budget else "final" if status.startswith("submitted") else "crash"


def _sum_swe_agent_tokens(stats: Table) -> int | None:
    counts = [stats.get("tokens_sent"), stats.get("tokens_received")]
    integers = [each for each in counts if isinstance(each, int)]
    return sum(integers) if len(integers) == 2 else None


def _sum_execution_times(run: Table) -> float | None:
    steps = run["trajectory"]
    times = (
        [_to_swe_agent_object(step).get("execution_time") for step in steps]
        if isinstance(steps, list)
        else []
    )
    numbers = [number for number in times if isinstance(number, int | float)]
    return sum(numbers) if numbers and len(numbers) == len(times) else None


def _join_swe_agent_text(said: object) -> str:
    """Return a text, or the joined texts of a list of parts."""
    if isinstance(said, list):
        return "\n".join(
            _join_swe_agent_text(_to_swe_agent_object(each).get("text")) for each in said
        )
    return said if isinstance(said, str) else ""


def _to_swe_agent_object(said: object) -> Table:
    return said if isinstance(said, dict) else {}
