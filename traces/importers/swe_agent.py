"""Import SWE-agent trajectories (`INSTANCE.traj`), following its documentation of the format.

One step is one entry of `trajectory`: the model's response, the action parsed from it, and the
observation of the environment. Whether an action failed is not recorded. The first system and user
messages are in `history`, and so are the tool calls of a model that has them; any other action is a
shell command. Costs and the exit status are in `info`, the model in `replay_config` of newer files.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import orjson

from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
    iter_openai_calls,
)
from traces.importers.shared.file_reader import decode_file_name, read_file_head
from traces.importers.shared.json_values import join_text_parts, to_object, to_objects
from traces.importers.shared.jsonl import iter_json_records
from traces.importers.shared.run_reader import ImportNotes, RawRun

NAME = "SWE-agent trajectories (a .traj with trajectory, history and info)"

TOOL = "bash"

type Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like a trajectory; those of mini-swe-agent have no `observation`."""
    start = read_file_head(path)
    return start.lstrip()[:1] == b"{" and b'"trajectory"' in start and b'"observation"' in start


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the run of the file; it is named after its task."""
    task = decode_file_name(path).split(".traj")[0]
    for where, document in iter_json_records(path):
        yield RawRun(where=where, read=partial(_read_run, document, task))


def _read_run(document: object, task: str, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    run = to_object(document)
    if not isinstance(run.get("trajectory"), list):
        raise ValueError("no list of steps under trajectory")
    info = to_object(run.get("info"))
    stats = to_object(info.get("model_stats"))
    facts = {
        "agent": "swe-agent",
        "model": _read_configured_model(run),
        "task": task,
        "ended": _read_swe_agent_ending(info.get("exit_status")),
        "cost_usd": stats.get("instance_cost"),
        "tokens": _sum_swe_agent_tokens(stats),
        "prompt_tokens": stats.get("tokens_sent"),
        "completion_tokens": stats.get("tokens_received"),
        "seconds": _sum_execution_times(run),
    }
    messages = tuple(_read_swe_agent_messages(run))
    return ImportedConversation(source="swe-agent", messages=messages, facts=facts, key=None)


def _read_configured_model(run: Table) -> object:
    """Return the model in the configuration of the run, which is JSON in a text."""
    config = run.get("replay_config")
    try:
        parsed = to_object(orjson.loads(config) if isinstance(config, str) else config)
    except orjson.JSONDecodeError:
        return None
    model = to_object(to_object(parsed.get("agent")).get("model"))
    return model.get("name") or model.get("model_name")


def _read_swe_agent_messages(run: Table) -> Iterator[ConversationMessage]:
    history = to_objects(run.get("history"))
    for each in history:
        role = each.get("role")
        if role not in ("system", "user"):
            break
        yield ConversationMessage(role=str(role), text=join_text_parts(each.get("content")))
    asked = _find_native_calls(history)
    for number, step in enumerate(to_objects(run["trajectory"]), 1):
        calls = tuple[ConversationCall, ...]()
        action = join_text_parts(step.get("action")).strip()
        if action:
            arguments = orjson.dumps({"command": action}).decode()
            own = ConversationCall(id=f"{TOOL}-{number}", tool=TOOL, arguments=arguments)
            same = asked.get(action, [])
            calls = same.pop(0) if same else (own,)
        text = join_text_parts(step.get("response")) or join_text_parts(step.get("thought"))
        yield ConversationMessage(role="assistant", text=text, calls=calls)
        if action and step.get("observation") is not None:
            text, took = join_text_parts(step.get("observation")), step.get("execution_time")
            yield ConversationMessage(
                role="tool",
                text=text,
                call_id=calls[0].id,
                seconds=float(took) if isinstance(took, int | float) else None,
            )


def _find_native_calls(history: list[Table]) -> dict[str, list[tuple[ConversationCall, ...]]]:
    """Return the tool calls of the model's responses by their action, in order."""
    found: dict[str, list[tuple[ConversationCall, ...]]] = {}
    for each in history:
        calls = tuple(iter_openai_calls(each.get("tool_calls")))
        if each.get("role") == "assistant" and calls:
            found.setdefault(join_text_parts(each.get("action")).strip(), []).append(calls)
    return found


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
        [to_object(step).get("execution_time") for step in steps] if isinstance(steps, list) else []
    )
    numbers = [number for number in times if isinstance(number, int | float)]
    return sum(numbers) if numbers and len(numbers) == len(times) else None
